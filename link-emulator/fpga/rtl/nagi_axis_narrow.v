// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * Converts each wide word of packet memory to one or more narrower AXI-stream beats of a frame.
 */
module nagi_axis_narrow #
(
    parameter DATA_WIDTH = 64,
    parameter MEM_WIDTH = 64
)
(
    input  wire                     clk,
    input  wire                     rst,

    input  wire [MEM_WIDTH-1:0]     word,
    input  wire [6:0]               word_bytes,
    input  wire                     word_last,
    input  wire                     word_valid,
    output wire                     word_ready,

    output wire [DATA_WIDTH-1:0]    m_axis_tdata,
    output wire [DATA_WIDTH/8-1:0]  m_axis_tkeep,
    output wire                     m_axis_tvalid,
    input  wire                     m_axis_tready,
    output wire                     m_axis_tlast
);

localparam BYTES = DATA_WIDTH / 8;
localparam LANES = MEM_WIDTH / DATA_WIDTH;
localparam LANE_WIDTH = LANES > 1 ? $clog2(LANES) : 1;

reg [LANE_WIDTH-1:0] lane_reg = 0;
reg [DATA_WIDTH-1:0] data;
reg [6:0] skipped;  // bytes of the word in the lanes before this one
reg [DATA_WIDTH/8-1:0] keep;
integer i;

wire [6:0] left = word_bytes - skipped;
// For each byte, this comparison needs only the low bits of the remaining length.
localparam [6:0] LOW_BITS = BYTES[6:0] - 7'd1;

wire [6:0] left_low = left & LOW_BITS;
wire is_whole = (left & ~LOW_BITS) != 0;
wire is_last_lane = LANES == 1 || {25'd0, left} <= BYTES;

assign m_axis_tdata = data;
assign m_axis_tkeep = keep;
assign m_axis_tvalid = word_valid;
assign m_axis_tlast = word_last && is_last_lane;
assign word_ready = m_axis_tready && is_last_lane;

always @* begin
    data = word[0 +: DATA_WIDTH];
    skipped = 0;
    for (i = 0; i < LANES; i = i + 1) begin
        if ({{32-LANE_WIDTH{1'b0}}, lane_reg} == i) begin
            data = word[i*DATA_WIDTH +: DATA_WIDTH];
            skipped = i[6:0] * BYTES[6:0];
        end
    end
    for (i = 0; i < BYTES; i = i + 1) begin
        keep[i] = is_whole || left_low >= i[6:0] + 7'd1;
    end
end

always @(posedge clk) begin
    if (m_axis_tvalid && m_axis_tready) begin
        lane_reg <= is_last_lane ? 0 : lane_reg + 1'b1;
    end
    if (rst) begin
        lane_reg <= 0;
    end
end

endmodule

`resetall
