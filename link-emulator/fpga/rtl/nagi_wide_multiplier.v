// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * Multiplies two unsigned 64-bit numbers, with four products of a nagi_multiplier outside this
 * module. A product takes 7 clocks from start to done.
 */
module nagi_wide_multiplier
(
    input  wire          clk,
    input  wire          rst,
    input  wire          start,
    input  wire [63:0]   a,
    input  wire [63:0]   b,
    output wire          done,
    output wire [127:0]  product,

    output wire [31:0]   factor_a,
    output wire [31:0]   factor_b,
    input  wire [63:0]   partial   // product, one clock after its factors
);

// One-hot. Steps 0 to 3 request the products low x low, low x high, high x low and high x high.
// Steps 2 to 5 add the products.
reg [5:0] step_reg = 0;
reg done_reg = 1'b0;
reg [63:0] partial_reg = 0;
reg [63:0] a_reg = 0;
reg [63:0] b_reg = 0;
reg [127:0] sum_reg = 0;

assign done = done_reg;
assign product = sum_reg;
assign factor_a = step_reg[2] || step_reg[3] ? a_reg[63:32] : a_reg[31:0];
assign factor_b = step_reg[1] || step_reg[3] ? b_reg[63:32] : b_reg[31:0];

always @(posedge clk) begin
    step_reg <= {step_reg[4:0], start};
    done_reg <= step_reg[5];
    partial_reg <= partial;
    if (start) begin
        a_reg <= a;
        b_reg <= b;
    end
    if (step_reg[2]) begin
        sum_reg <= {64'd0, partial_reg};
    end
    // The sum of the first three products is below 2^98.
    if (step_reg[3] || step_reg[4]) begin
        sum_reg[97:32] <= sum_reg[97:32] + {2'd0, partial_reg};
    end
    if (step_reg[5]) begin
        sum_reg[127:64] <= sum_reg[127:64] + partial_reg;
    end
    if (rst) begin
        step_reg <= 0;
        done_reg <= 1'b0;
    end
end

endmodule

`resetall
