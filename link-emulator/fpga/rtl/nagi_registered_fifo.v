// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * A nagi_fifo with a register at its output, so that no logic delays the output. With the register,
 * the FIFO holds one more entry.
 */
module nagi_registered_fifo #
(
    parameter WIDTH = 8,
    // log2 of the number of entries before the register.
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
    .m_ready(moves)
);

always @(posedge clk) begin
    if (moves) begin
        data_reg <= next_data;
        valid_reg <= next_valid;
    end
    if (rst) begin
        valid_reg <= 1'b0;
    end
end

endmodule

`resetall
