// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * What of a packet's headers the link needs, from the halfwords of its frame as they come: ECN
 * field, identity, and what changes if the packet is marked. It is what IpHeader of
 * runtime/io/ip_header.hpp makes of it: any number of VLAN tags, IPv4 with options, IPv6.
 */
module nagi_frame_parser
(
    input  wire         clk,

    // With the first halfword of a frame.
    input  wire         first,
    input  wire [15:0]  half,
    // Not of a last byte without its second.
    input  wire         half_valid,

    // Nothing that follows in the frame matters.
    output wire         done,

    // Valid two clocks after the last halfword that mattered.
    output wire         is_ipv4,
    output wire [1:0]   ecn,
    output wire [31:0]  identity,
    // The first halfword of the IP header, counted in the frame, and as it is.
    output wire [9:0]   ip_at,
    output wire [15:0]  ip_word,
    // IPv4's header checksum with the packet marked.
    output wire [15:0]  marked_checksum
);

localparam [15:0]
    TYPE_IPV4 = 16'h0800,
    TYPE_IPV6 = 16'h86DD,
    TYPE_VLAN = 16'h8100,
    TYPE_SERVICE_VLAN = 16'h88A8;

localparam [7:0]
    PROTOCOL_ICMP = 8'd1,
    PROTOCOL_TCP = 8'd6,
    PROTOCOL_UDP = 8'd17,
    PROTOCOL_ICMPV6 = 8'd58;

localparam [1:0]
    STATE_ETHERNET = 2'd0,
    STATE_IPV4 = 2'd1,
    STATE_IPV6 = 2'd2,
    STATE_DONE = 2'd3;

reg [1:0] state_reg = STATE_DONE;
reg [9:0] index_reg = 0;       // of the halfword, in the frame
reg [9:0] type_at_reg = 0;     // where the next EtherType is
reg [9:0] ip_at_reg = 0;
reg [6:0] offset_reg = 0;      // of the halfword, in the IP packet
reg [6:0] header_reg = 0;      // halfwords of the IP header
reg [15:0] ip_word_reg = 0;
reg [15:0] checksum_reg = 0;   // of the IPv4 header
reg [15:0] id_reg = 0;
reg [15:0] sequence_reg = 0;   // lower half of TCP's, over IPv6
reg [15:0] numbers_reg = 0;
reg [15:0] payload_checksum_reg = 0;
reg is_later_fragment_reg = 1'b0;
reg has_checksum_reg = 1'b0;
reg is_tcp_reg = 1'b0;
reg [6:0] checksum_at_reg = 0; // of the payload
reg is_ipv4_reg = 1'b0;
reg is_ipv6_reg = 1'b0;
reg [17:0] sum_reg = 0;

// Where the payload's checksum is, from the payload on.
reg [3:0] place;
reg has_place;
wire [7:0] protocol = state_reg == STATE_IPV6 ? half[15:8] : half[7:0];

always @* begin
    place = 4'd0;
    has_place = 1'b1;
    case (protocol)
        PROTOCOL_TCP: place = 4'd8;
        PROTOCOL_UDP: place = 4'd3;
        PROTOCOL_ICMP, PROTOCOL_ICMPV6: place = 4'd1;
        default: has_place = 1'b0;
    endcase
end

// RFC 1624, equation 3: HC' = ~(~HC + ~m + m').
wire [16:0] folded_once = {1'b0, sum_reg[15:0]} + {15'd0, sum_reg[17:16]};
wire [15:0] folded = folded_once[15:0] + {15'd0, folded_once[16]};

assign done = state_reg == STATE_DONE;
assign is_ipv4 = is_ipv4_reg;
assign ecn = is_ipv4_reg ? ip_word_reg[1:0] : is_ipv6_reg ? ip_word_reg[5:4] : 2'd0;
assign identity = is_ipv4_reg ? {id_reg, payload_checksum_reg} :
    is_ipv6_reg ? {numbers_reg, payload_checksum_reg} : 32'd0;
assign ip_at = ip_at_reg;
assign ip_word = ip_word_reg;
assign marked_checksum = ~folded;

always @(posedge clk) begin
    sum_reg <= {2'd0, ~checksum_reg} + {2'd0, ~ip_word_reg} + {2'd0, ip_word_reg | 16'd3};

    if (half_valid && (first || !done)) begin
        index_reg <= first ? 10'd1 : index_reg + 1'b1;
        if (first) begin
            state_reg <= STATE_ETHERNET;
            type_at_reg <= 10'd6;
            is_ipv4_reg <= 1'b0;
            is_ipv6_reg <= 1'b0;
            payload_checksum_reg <= 0;
            numbers_reg <= 0;
            is_later_fragment_reg <= 1'b0;
            has_checksum_reg <= 1'b0;
            is_tcp_reg <= 1'b0;
        end else begin
            offset_reg <= offset_reg + 1'b1;
            case (state_reg)
                STATE_ETHERNET: begin
                    offset_reg <= 0;
                    ip_at_reg <= index_reg + 1'b1;
                    if (index_reg == type_at_reg) begin
                        case (half)
                            TYPE_IPV4: state_reg <= STATE_IPV4;
                            TYPE_IPV6: state_reg <= STATE_IPV6;
                            TYPE_VLAN, TYPE_SERVICE_VLAN: type_at_reg <= type_at_reg + 10'd2;
                            default: state_reg <= STATE_DONE;
                        endcase
                        // Tags up to here: no frame is as long.
                        if (&index_reg[9:2]) begin
                            state_reg <= STATE_DONE;
                        end
                    end
                end
                STATE_IPV4: begin
                    if (offset_reg == 0) begin
                        ip_word_reg <= half;
                        header_reg <= {2'd0, half[11:8], 1'b0};
                        if (half[15:12] != 4'd4 || half[11:8] < 4'd5) begin
                            state_reg <= STATE_DONE;
                        end
                    end
                    if (offset_reg == 2) id_reg <= half;
                    if (offset_reg == 3) is_later_fragment_reg <= half[12:0] != 0;
                    if (offset_reg == 4) begin
                        has_checksum_reg <= has_place && !is_later_fragment_reg;
                        checksum_at_reg <= header_reg + {3'd0, place};
                    end
                    if (offset_reg == 5) checksum_reg <= half;
                    if (offset_reg == header_reg - 1'b1 && offset_reg >= 9) begin
                        is_ipv4_reg <= 1'b1;
                        if (!has_checksum_reg) begin
                            state_reg <= STATE_DONE;
                        end
                    end
                    if (offset_reg > 4 && has_checksum_reg && offset_reg == checksum_at_reg) begin
                        payload_checksum_reg <= half;
                        state_reg <= STATE_DONE;
                    end
                end
                STATE_IPV6: begin
                    if (offset_reg == 0) begin
                        ip_word_reg <= half;
                        if (half[15:12] != 4'd6) begin
                            state_reg <= STATE_DONE;
                        end
                    end
                    if (offset_reg == 3) begin
                        has_checksum_reg <= has_place;
                        is_tcp_reg <= protocol == PROTOCOL_TCP;
                        checksum_at_reg <= 7'd20 + {3'd0, place};
                    end
                    if (offset_reg == 19) begin
                        is_ipv6_reg <= 1'b1;
                        if (!has_checksum_reg) begin
                            state_reg <= STATE_DONE;
                        end
                    end
                    if (is_tcp_reg && offset_reg == 23) sequence_reg <= half;
                    if (is_tcp_reg && offset_reg == 25) numbers_reg <= sequence_reg + half;
                    if (offset_reg > 4 && has_checksum_reg && offset_reg == checksum_at_reg) begin
                        payload_checksum_reg <= half;
                        state_reg <= STATE_DONE;
                    end
                end
                default: ;
            endcase
        end
    end
end

endmodule

`resetall
