// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * Releases each packet in the first tick at which the packet is due, and reports the release in a
 * record. A clock has one or two ticks. The current instant is the instant of the first tick.
 * `soon_ns` is the current instant two clocks later.
 */
module nagi_release #
(
    parameter DATA_WIDTH = 64,
    parameter MEM_WIDTH = 64,
    parameter TICKS = 1,
    // Length of a tick, in ns. A release that is late by at least a tick counts as late.
    parameter TICK_NS = 8
)
(
    input  wire                     clk,
    input  wire                     rst,
    // 0: the module begins no further frame.
    input  wire                     run,
    input  wire [63:0]              soon_ns,

    // The next packet. If the packet is not lost, the words of its frame follow.
    input  wire                     packet_lost,
    input  wire [63:0]              packet_left_ns,
    input  wire [15:0]              packet_frame_bytes,
    input  wire [63:0]              packet_arrived_ns,
    input  wire [31:0]              packet_index,
    input  wire [31:0]              packet_identity,
    input  wire [1:0]               packet_ecn,
    input  wire                     packet_marked,
    input  wire                     packet_valid,
    output wire                     packet_ready,

    input  wire [MEM_WIDTH-1:0]     word,
    input  wire                     word_valid,
    output wire                     word_ready,

    output wire [DATA_WIDTH-1:0]    m_axis_tdata,
    output wire [DATA_WIDTH/8-1:0]  m_axis_tkeep,
    output wire                     m_axis_tvalid,
    input  wire                     m_axis_tready,
    output wire                     m_axis_tlast,
    // 1: the frame leaves in the second tick. The output is valid with the first beat, in the clock
    // in which that beat is taken.
    output wire                     m_axis_second,

    // A record, which stays until it is taken.
    output wire                     record_valid,
    input  wire                     record_ready,
    output wire                     record_lost,
    output wire [63:0]              record_left_ns,
    output wire [15:0]              record_bytes,
    output wire [63:0]              record_arrived_ns,
    output wire [31:0]              record_index,
    output wire [31:0]              record_identity,
    output wire [1:0]               record_ecn,
    output wire                     record_marked,
    output wire [31:0]              record_late_ns,
    output wire                     record_is_late,

    // The instant at which the next packet is due, or all ones if there is none.
    output wire [63:0]              next_due_ns,
    output wire                     busy,
    output wire                     idle
);

localparam WORD_BYTES = MEM_WIDTH / 8;
localparam [15:0] ETHERNET_HEADER = 16'd14;
localparam [63:0] TICK = {32'd0, TICK_NS[31:0]};
localparam TICK_WIDTH = $clog2(TICK_NS + 1);

// The state is one-hot; these are its bits.
localparam
    EMPTY = 0,
    WAIT = 1,
    OPEN = 2,
    SEND = 3,
    DROP = 4;

localparam [4:0]
    STATE_EMPTY = 5'd1 << EMPTY,
    STATE_WAIT = 5'd1 << WAIT,
    STATE_OPEN = 5'd1 << OPEN,
    STATE_SEND = 5'd1 << SEND,
    STATE_DROP = 5'd1 << DROP;

reg [4:0] state_reg = STATE_EMPTY;
reg lost_reg = 1'b0;
reg [63:0] left_reg = 0;
reg [15:0] frame_bytes_reg = 0;
reg [63:0] arrived_reg = 0;
reg [31:0] index_reg = 0;
reg [31:0] identity_reg = 0;
reg [1:0] ecn_reg = 0;
reg marked_reg = 1'b0;
reg [15:0] to_send_reg = 0;  // bytes to send, from the word at the output on
reg is_last_word_reg = 1'b0;
reg ready_reg = 1'b0;
reg [1:0] age_reg = 0;       // clocks for which the packet has waited
reg [63:0] late_soon_reg = 0;  // lateness in the next clock; below 0: the packet is early
reg was_due_first_reg = 1'b0;  // the packet was due in the clock's first tick
// Lateness in the clock's first tick, if the packet is not early. is_far_reg: the lateness exceeds
// 32 bits.
reg [31:0] late_first_reg = 0;
reg is_far_reg = 1'b0;
reg record_valid_reg = 1'b0;
// record_late_reg is computed from late_reg. The record is valid in two clocks.
reg record_pending_reg = 1'b0;
reg record_made_reg = 1'b0;
reg [31:0] late_reg = 0;
reg late_is_far_reg = 1'b0;
reg [31:0] record_late_reg = 0;
reg record_is_late_reg = 1'b0;

// The packet is due. The first beat is offered until it is taken.
wire sends = state_reg[OPEN] || state_reg[SEND];
wire narrow_valid;
wire narrow_last;
wire narrow_ready;
wire [31:0] saturated = late_reg | {32{late_is_far_reg}};
wire accepted = m_axis_tvalid && m_axis_tready;
// The packet is early by at most a tick, so it is due by the last tick of the next clock.
wire is_due = !late_soon_reg[63] || (TICKS > 1 && ~late_soon_reg < TICK);
wire second = TICKS > 1 && !was_due_first_reg;
// In the second tick, the packet is late by less than a tick.
wire [TICK_WIDTH-1:0] late_second = late_first_reg[TICK_WIDTH-1:0] + TICK_NS[TICK_WIDTH-1:0];

assign packet_ready = ready_reg;
assign word_ready = sends && narrow_ready;
assign m_axis_tvalid = narrow_valid;
assign m_axis_tlast = narrow_last;
assign m_axis_second = state_reg[OPEN] && second;

assign record_valid = record_valid_reg;
assign record_lost = lost_reg;
assign record_left_ns = left_reg;
assign record_bytes = frame_bytes_reg - ETHERNET_HEADER;
assign record_arrived_ns = arrived_reg;
assign record_index = index_reg;
assign record_identity = identity_reg;
assign record_ecn = ecn_reg;
assign record_marked = marked_reg;
assign record_late_ns = record_late_reg;
assign record_is_late = record_is_late_reg;

assign next_due_ns = state_reg[WAIT] || state_reg[OPEN] || state_reg[DROP] ? left_reg : {64{1'b1}};
assign busy = state_reg[SEND] || state_reg[OPEN] || state_reg[DROP];
assign idle = (state_reg[EMPTY] && !packet_valid && !record_pending_reg && !record_made_reg && !record_valid_reg) ||
    (state_reg[WAIT] && age_reg[1] && !is_due);

nagi_axis_narrow #(.DATA_WIDTH(DATA_WIDTH), .MEM_WIDTH(MEM_WIDTH)) narrow_inst (
    .clk(clk),
    .rst(rst),
    .word(word),
    .word_bytes(is_last_word_reg ? to_send_reg[6:0] : WORD_BYTES[6:0]),
    .word_last(is_last_word_reg),
    .word_valid(word_valid && sends),
    .word_ready(narrow_ready),
    .m_axis_tdata(m_axis_tdata),
    .m_axis_tkeep(m_axis_tkeep),
    .m_axis_tvalid(narrow_valid),
    .m_axis_tready(m_axis_tready),
    .m_axis_tlast(narrow_last)
);

always @(posedge clk) begin
    record_pending_reg <= 1'b0;
    record_made_reg <= record_pending_reg;
    if (record_pending_reg) begin
        record_late_reg <= saturated;
    end
    if (record_made_reg) begin
        record_is_late_reg <= record_late_reg >= TICK_NS;
        record_valid_reg <= 1'b1;
    end else if (record_ready) begin
        record_valid_reg <= 1'b0;
    end

    late_soon_reg <= soon_ns - left_reg;
    was_due_first_reg <= !late_soon_reg[63];
    late_first_reg <= late_soon_reg[31:0];
    is_far_reg <= late_soon_reg[62:32] != 0;
    age_reg <= state_reg[WAIT] ? {age_reg[0] || age_reg[1], 1'b1} : 2'd0;

    if (word_valid && word_ready) begin
        to_send_reg <= to_send_reg - WORD_BYTES[15:0];
        is_last_word_reg <= {16'd0, to_send_reg} <= 2 * WORD_BYTES;
    end
    ready_reg <= state_reg[EMPTY] && run && !record_pending_reg && !record_made_reg && !record_valid_reg &&
        !(packet_valid && ready_reg);

    (* parallel_case *)
    case (1'b1)
        state_reg[EMPTY]: begin
            if (packet_valid && packet_ready) begin
                state_reg <= STATE_WAIT;
            end
        end
        state_reg[WAIT]: begin
            if (age_reg == 0) begin
                to_send_reg <= frame_bytes_reg;
                is_last_word_reg <= {16'd0, frame_bytes_reg} <= WORD_BYTES;
            end
            if (age_reg[1] && is_due && run) begin
                state_reg <= lost_reg ? STATE_DROP : STATE_OPEN;
            end
        end
        state_reg[OPEN]: begin
            late_reg <= second ? {{32-TICK_WIDTH{1'b0}}, late_second} : late_first_reg;
            late_is_far_reg <= is_far_reg && !second;
            if (accepted) begin
                record_pending_reg <= 1'b1;
                state_reg <= m_axis_tlast ? STATE_EMPTY : STATE_SEND;
            end
        end
        state_reg[DROP]: begin
            late_reg <= 0;
            late_is_far_reg <= 1'b0;
            record_pending_reg <= 1'b1;
            state_reg <= STATE_EMPTY;
        end
        state_reg[SEND]: begin
            if (accepted && m_axis_tlast) begin
                state_reg <= STATE_EMPTY;
            end
        end
        default: state_reg <= STATE_EMPTY;
    endcase

    // Fields of the packet, if there is one.
    if (ready_reg) begin
        lost_reg <= packet_lost;
        left_reg <= packet_left_ns;
        frame_bytes_reg <= packet_frame_bytes;
        arrived_reg <= packet_arrived_ns;
        index_reg <= packet_index;
        identity_reg <= packet_identity;
        ecn_reg <= packet_ecn;
        marked_reg <= packet_marked;
    end

    if (rst) begin
        state_reg <= STATE_EMPTY;
        age_reg <= 0;
        ready_reg <= 1'b0;
        record_pending_reg <= 1'b0;
        record_made_reg <= 1'b0;
        record_valid_reg <= 1'b0;
    end
end

endmodule

`resetall
