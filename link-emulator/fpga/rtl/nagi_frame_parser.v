// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * Reads the halfwords of a frame as they arrive and extracts the header fields that the link needs:
 * the ECN field, the identity, and the fields that change if the packet is marked. The results
 * equal those of IpHeader in runtime/io/ip_header.hpp. The parser supports any number of VLAN tags,
 * IPv4 with options, and IPv6.
 */
module nagi_frame_parser
(
    input  wire         clk,

    // 1 with the first halfword of a frame.
    input  wire         first,
    input  wire [15:0]  half,
    // 0 if the second byte of the last halfword is missing.
    input  wire         half_valid,

    // The rest of the frame does not matter. The output follows the deciding halfword by two
    // clocks.
    output wire         done,

    // The outputs below are valid four clocks after the last halfword that mattered.
    output wire         is_ipv4,
    output wire [1:0]   ecn,
    output wire [31:0]  identity,
    // The first halfword of the IP header: its index in the frame, and its value.
    output wire [9:0]   ip_at,
    output wire [15:0]  ip_word,
    // The IPv4 header checksum of the marked packet.
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

// The state is one-hot; these are its bits.
localparam
    ETHERNET = 0,
    IPV4 = 1,
    IPV6 = 2,
    DONE = 3;

localparam [3:0]
    STATE_ETHERNET = 4'd1 << ETHERNET,
    STATE_IPV4 = 4'd1 << IPV4,
    STATE_IPV6 = 4'd1 << IPV6,
    STATE_DONE = 4'd1 << DONE;

// These registers decode a halfword one clock after its arrival.
reg valid_reg = 1'b0;
reg begins_reg = 1'b0;         // the halfword is the first of a frame
reg [15:0] half_reg = 0;
reg is_type_ipv4_reg = 1'b0;
reg is_type_ipv6_reg = 1'b0;
reg is_type_vlan_reg = 1'b0;
reg begins_ipv4_reg = 1'b0;
reg begins_ipv6_reg = 1'b0;
reg is_offset_reg = 1'b0;      // the fragment offset is not 0
// The low or high byte of the halfword, as the protocol of a payload that has a checksum.
reg is_low_tcp_reg = 1'b0;
reg is_low_udp_reg = 1'b0;
reg is_low_icmp_reg = 1'b0;
reg is_high_tcp_reg = 1'b0;
reg is_high_udp_reg = 1'b0;
reg is_high_icmp_reg = 1'b0;

reg [3:0] state_reg = STATE_DONE;
reg [9:0] index_reg = 0;       // index of the halfword in the frame
reg is_far_reg = 1'b0;         // the index exceeds the length of any frame
reg [5:0] until_type_reg = 0;  // one-hot; bit 5: the halfword is an EtherType
reg [9:0] ip_at_reg = 0;
reg [6:0] offset_reg = 0;      // offset of the halfword in the IP packet
reg [25:0] at_reg = 0;         // offset_reg, one-hot
reg [3:0] header_reg = 0;      // length of the IPv4 header, in words of 32 bits
reg [6:0] last_at_reg = 0;     // offset of the last halfword of the header
reg is_last_reg = 1'b0;        // the halfword is the last of the header
reg [15:0] ip_word_reg = 0;
reg [15:0] checksum_reg = 0;   // checksum of the IPv4 header
reg [15:0] id_reg = 0;
reg [15:0] sequence_reg = 0;   // lower half of the TCP sequence number, over IPv6
reg [15:0] numbers_reg = 0;
reg [15:0] payload_checksum_reg = 0;
reg is_later_fragment_reg = 1'b0;
reg has_checksum_reg = 1'b0;
reg is_tcp_reg = 1'b0;
reg [6:0] checksum_at_reg = 0; // offset of the checksum of the payload
reg is_checksum_reg = 1'b0;    // the halfword is the checksum of the payload
reg is_ipv4_reg = 1'b0;
reg is_ipv6_reg = 1'b0;
reg [16:0] marking_reg = 0;
reg [17:0] sum_reg = 0;
reg [16:0] folded_once_reg = 0;

// Offset of the checksum in the payload, in halfwords: TCP 8, UDP 3, ICMP 1.
wire [3:0] place_ipv4 = {is_low_tcp_reg, 1'b0, is_low_udp_reg, is_low_udp_reg || is_low_icmp_reg};
wire [3:0] place_ipv6 = {is_high_tcp_reg, 1'b0, is_high_udp_reg,
    is_high_udp_reg || is_high_icmp_reg};
wire [15:0] folded = folded_once_reg[15:0] + {15'd0, folded_once_reg[16]};
wire [6:0] next_offset = offset_reg + 1'b1;

assign done = state_reg[DONE];
assign is_ipv4 = is_ipv4_reg;
assign ecn = is_ipv4_reg ? ip_word_reg[1:0] : is_ipv6_reg ? ip_word_reg[5:4] : 2'd0;
assign identity = is_ipv4_reg ? {id_reg, payload_checksum_reg} :
    is_ipv6_reg ? {numbers_reg, payload_checksum_reg} : 32'd0;
assign ip_at = ip_at_reg;
assign ip_word = ip_word_reg;
assign marked_checksum = ~folded;

always @(posedge clk) begin
    valid_reg <= half_valid;
    begins_reg <= half_valid && first;
    half_reg <= half;
    is_type_ipv4_reg <= half == TYPE_IPV4;
    is_type_ipv6_reg <= half == TYPE_IPV6;
    is_type_vlan_reg <= half == TYPE_VLAN || half == TYPE_SERVICE_VLAN;
    begins_ipv4_reg <= half[15:12] == 4'd4 && half[11:8] >= 4'd5;
    begins_ipv6_reg <= half[15:12] == 4'd6;
    is_offset_reg <= half[12:0] != 0;
    is_low_tcp_reg <= half[7:0] == PROTOCOL_TCP;
    is_low_udp_reg <= half[7:0] == PROTOCOL_UDP;
    is_low_icmp_reg <= half[7:0] == PROTOCOL_ICMP || half[7:0] == PROTOCOL_ICMPV6;
    is_high_tcp_reg <= half[15:8] == PROTOCOL_TCP;
    is_high_udp_reg <= half[15:8] == PROTOCOL_UDP;
    is_high_icmp_reg <= half[15:8] == PROTOCOL_ICMP || half[15:8] == PROTOCOL_ICMPV6;

    // RFC 1624, equation 3: HC' = ~(~HC + ~m + m'). m' is m with both bits of the ECN field set.
    marking_reg <= 17'hFFFF + {15'd0, ~ip_word_reg[1:0]};
    sum_reg <= {2'd0, ~checksum_reg} + {1'b0, marking_reg};
    folded_once_reg <= {1'b0, sum_reg[15:0]} + {15'd0, sum_reg[17:16]};

    if (begins_reg) begin
        index_reg <= 10'd1;
        is_far_reg <= 1'b0;
        until_type_reg <= 6'd1;
        state_reg <= STATE_ETHERNET;
        is_ipv4_reg <= 1'b0;
        is_ipv6_reg <= 1'b0;
        payload_checksum_reg <= 0;
        numbers_reg <= 0;
        is_later_fragment_reg <= 1'b0;
        has_checksum_reg <= 1'b0;
        is_tcp_reg <= 1'b0;
    end else if (valid_reg && !done) begin
        index_reg <= index_reg + 1'b1;
        is_far_reg <= &index_reg[9:2];
        until_type_reg <= until_type_reg << 1;
        offset_reg <= next_offset;
        at_reg <= at_reg << 1;
        is_last_reg <= next_offset == last_at_reg;
        is_checksum_reg <= next_offset == checksum_at_reg;
        (* parallel_case *)
        case (1'b1)
            state_reg[ETHERNET]: begin
                offset_reg <= 0;
                at_reg <= 26'd1;
                is_last_reg <= 1'b0;
                is_checksum_reg <= 1'b0;
                ip_at_reg <= index_reg + 1'b1;
                if (until_type_reg[5]) begin
                    if (is_far_reg) begin
                        state_reg <= STATE_DONE;
                    end else if (is_type_ipv4_reg) begin
                        state_reg <= STATE_IPV4;
                    end else if (is_type_ipv6_reg) begin
                        state_reg <= STATE_IPV6;
                    end else if (is_type_vlan_reg) begin
                        until_type_reg <= 6'b010000;
                    end else begin
                        state_reg <= STATE_DONE;
                    end
                end
            end
            state_reg[IPV4]: begin
                if (at_reg[0]) begin
                    ip_word_reg <= half_reg;
                    header_reg <= half_reg[11:8];
                    last_at_reg <= {2'd0, half_reg[11:8] - 4'd1, 1'b1};
                    if (!begins_ipv4_reg) begin
                        state_reg <= STATE_DONE;
                    end
                end
                if (at_reg[2]) id_reg <= half_reg;
                if (at_reg[3]) is_later_fragment_reg <= is_offset_reg;
                if (at_reg[4]) begin
                    has_checksum_reg <= (is_low_tcp_reg || is_low_udp_reg ||
                        is_low_icmp_reg) && !is_later_fragment_reg;
                    checksum_at_reg <= {2'd0, header_reg, 1'b0} + {3'd0, place_ipv4};
                end
                if (at_reg[5]) checksum_reg <= half_reg;
                if (is_last_reg) begin
                    is_ipv4_reg <= 1'b1;
                    if (!has_checksum_reg) begin
                        state_reg <= STATE_DONE;
                    end
                end
                if (has_checksum_reg && is_checksum_reg) begin
                    payload_checksum_reg <= half_reg;
                    state_reg <= STATE_DONE;
                end
            end
            state_reg[IPV6]: begin
                if (at_reg[0]) begin
                    ip_word_reg <= half_reg;
                    if (!begins_ipv6_reg) begin
                        state_reg <= STATE_DONE;
                    end
                end
                if (at_reg[3]) begin
                    has_checksum_reg <= is_high_tcp_reg || is_high_udp_reg || is_high_icmp_reg;
                    is_tcp_reg <= is_high_tcp_reg;
                    checksum_at_reg <= 7'd20 + {3'd0, place_ipv6};
                end
                if (at_reg[19]) begin
                    is_ipv6_reg <= 1'b1;
                    if (!has_checksum_reg) begin
                        state_reg <= STATE_DONE;
                    end
                end
                if (is_tcp_reg && at_reg[23]) sequence_reg <= half_reg;
                if (is_tcp_reg && at_reg[25]) numbers_reg <= sequence_reg + half_reg;
                if (has_checksum_reg && is_checksum_reg) begin
                    payload_checksum_reg <= half_reg;
                    state_reg <= STATE_DONE;
                end
            end
            default: ;
        endcase
    end
end

endmodule

`resetall
