// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * Converts the beats of a frame to words of packet memory. With each word, it gives the instant at
 * which the word's last beat was accepted. It discards frames that begin while `accept` is 0.
 */
module nagi_axis_widen #
(
    parameter DATA_WIDTH = 64,
    parameter MEM_WIDTH = 64,
    parameter TIMESTAMPED = 0,
    parameter TICKS = 1,
    parameter TICK_NS = 8
)
(
    input  wire                             clk,
    input  wire                             rst,
    input  wire                             accept,
    input  wire [63:0]                      now_ns,

    input  wire [DATA_WIDTH-1:0]            s_axis_tdata,
    input  wire [DATA_WIDTH/8-1:0]          s_axis_tkeep,
    input  wire                             s_axis_tvalid,
    output wire                             s_axis_tready,
    input  wire                             s_axis_tlast,
    input  wire [(TIMESTAMPED ? 64 : TICKS-1):0]  s_axis_tuser,

    // The last beat of a frame is accepted.
    output wire                             arrives,

    output wire [MEM_WIDTH-1:0]             word,
    output wire [6:0]                       word_bytes,
    output wire                             word_first,
    output wire                             word_last,
    // word_bad and word_arrived_ns belong to the last word of a frame.
    output wire                             word_bad,
    output wire [63:0]                      word_arrived_ns,
    output wire                             word_valid,
    input  wire                             word_ready
);

localparam BYTES = DATA_WIDTH / 8;
localparam LANES = MEM_WIDTH / DATA_WIDTH;
localparam LANE_WIDTH = LANES > 1 ? $clog2(LANES) : 1;

reg in_frame_reg = 1'b0;      // a frame has begun and its last beat has not come
reg discarding_reg = 1'b0;    // the current frame is discarded
reg first_reg = 1'b1;         // no word of the frame has been given out
reg [LANE_WIDTH-1:0] lane_reg = 0;
reg [MEM_WIDTH-1:0] gathered_reg = 0;
reg [6:0] gathered_bytes_reg = 0;

reg [MEM_WIDTH-1:0] word_reg = 0;
reg [6:0] word_bytes_reg = 0;
reg word_first_reg = 1'b0;
reg word_last_reg = 1'b0;
reg word_bad_reg = 1'b0;
reg [63:0] arrived_reg = 0;
reg word_valid_reg = 1'b0;

reg [6:0] beat_bytes;
reg [MEM_WIDTH-1:0] gathered_next;
integer i;

wire discards = in_frame_reg ? discarding_reg : !accept;
wire completes = s_axis_tlast || LANES == 1 || {{32-LANE_WIDTH{1'b0}}, lane_reg} == LANES - 1;
wire accepted = s_axis_tvalid && s_axis_tready;

wire [63:0] beat_ns;

generate
    if (TIMESTAMPED) begin : timestamp
        wire unused = &{1'b0, now_ns};
        assign beat_ns = s_axis_tuser[64:1];
    end else begin : timestamp
        localparam [63:0] TICK = {32'd0, TICK_NS[31:0]};
        // tuser[1] marks a beat of the clock's second tick.
        assign beat_ns = now_ns + (TICKS > 1 && s_axis_tuser[TICKS-1] ? TICK : 64'd0);
    end
endgenerate

// s_axis_tready does not depend on word_ready. The module therefore gives at most one word every
// second clock.
assign s_axis_tready = !completes || !word_valid_reg;
assign arrives = accepted && s_axis_tlast && !discards;
assign word = word_reg;
assign word_bytes = word_bytes_reg;
assign word_first = word_first_reg;
assign word_last = word_last_reg;
assign word_bad = word_bad_reg;
assign word_arrived_ns = arrived_reg;
assign word_valid = word_valid_reg;

always @* begin
    beat_bytes = 0;
    for (i = 0; i < BYTES; i = i + 1) begin
        beat_bytes = beat_bytes + {6'd0, s_axis_tkeep[i]};
    end
    gathered_next = gathered_reg;
    for (i = 0; i < LANES; i = i + 1) begin
        if ({{32-LANE_WIDTH{1'b0}}, lane_reg} == i) begin
            gathered_next[i*DATA_WIDTH +: DATA_WIDTH] = s_axis_tdata;
        end
    end
end

always @(posedge clk) begin
    if (word_ready) begin
        word_valid_reg <= 1'b0;
    end
    if (accepted) begin
        in_frame_reg <= !s_axis_tlast;
        discarding_reg <= discards;
        if (!discards) begin
            gathered_reg <= gathered_next;
            if (completes) begin
                word_reg <= gathered_next;
                word_bytes_reg <= gathered_bytes_reg + beat_bytes;
                word_first_reg <= first_reg;
                word_last_reg <= s_axis_tlast;
                word_bad_reg <= s_axis_tuser[0];
                arrived_reg <= beat_ns;
                word_valid_reg <= 1'b1;
                first_reg <= s_axis_tlast;
                lane_reg <= 0;
                gathered_bytes_reg <= 0;
            end else begin
                lane_reg <= lane_reg + 1'b1;
                gathered_bytes_reg <= gathered_bytes_reg + beat_bytes;
            end
        end
    end
    if (rst) begin
        // The rest of a frame that has begun is discarded.
        discarding_reg <= 1'b1;
        first_reg <= 1'b1;
        lane_reg <= 0;
        gathered_bytes_reg <= 0;
        word_valid_reg <= 1'b0;
    end
end

endmodule

`resetall
