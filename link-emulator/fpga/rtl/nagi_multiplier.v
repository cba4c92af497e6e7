// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * Multiplies two unsigned 32-bit numbers, one pair per clock, with four multipliers of 16 bits. The
 * product is valid one clock after its operands.
 */
module nagi_multiplier
(
    input  wire         clk,
    input  wire [31:0]  a,
    input  wire [31:0]  b,
    output wire [63:0]  product
);

reg [31:0] low_reg = 0;
reg [31:0] cross_a_reg = 0;
reg [31:0] cross_b_reg = 0;
reg [31:0] high_reg = 0;

wire [32:0] middle = {1'b0, cross_a_reg} + {1'b0, cross_b_reg};

assign product[15:0] = low_reg[15:0];
assign product[63:16] = {high_reg, low_reg[31:16]} + {15'd0, middle};

always @(posedge clk) begin
    low_reg <= a[15:0] * b[15:0];
    cross_a_reg <= a[31:16] * b[15:0];
    cross_b_reg <= a[15:0] * b[31:16];
    high_reg <= a[31:16] * b[31:16];
end

endmodule

`resetall
