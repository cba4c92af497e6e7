// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * A nagi_fifo with registers at its output: what is there is there at the beginning of a clock, and
 * the FIFO behind does not depend on whoever takes it. It takes an entry every clock and gives one
 * every other clock. It holds two entries more.
 */
module nagi_registered_fifo #
(
    parameter WIDTH = 8,
    // log2 of the entries behind the registers.
    parameter DEPTH_WIDTH = 4
)
(
    input  wire              clk,
    input  wire              rst,

    input  wire [WIDTH-1:0]  s_data,
    input  wire              s_valid,
    output wire              s_ready,

    output wire [WIDTH-1:0]  m_data,
    output wire              m_valid,
    input  wire              m_ready
);

reg [WIDTH-1:0] data_reg = 0;
reg valid_reg = 1'b0;
reg [WIDTH-1:0] ahead_reg = 0;
reg is_ahead_reg = 1'b0;

wire [WIDTH-1:0] next_data;
wire next_valid;
wire moves = !valid_reg || m_ready;

assign m_data = data_reg;
assign m_valid = valid_reg;

nagi_fifo #(.WIDTH(WIDTH), .DEPTH_WIDTH(DEPTH_WIDTH)) entries_inst (
    .clk(clk),
    .rst(rst),
    .s_data(s_data),
    .s_valid(s_valid),
    .s_ready(s_ready),
    .m_data(next_data),
    .m_valid(next_valid),
    .m_ready(!is_ahead_reg)
);

always @(posedge clk) begin
    if (!is_ahead_reg) begin
        ahead_reg <= next_data;
    end
    is_ahead_reg <= is_ahead_reg ? !moves : next_valid;
    if (moves) begin
        data_reg <= ahead_reg;
        valid_reg <= is_ahead_reg;
    end
    if (rst) begin
        is_ahead_reg <= 1'b0;
        valid_reg <= 1'b0;
    end
end

endmodule

`resetall
