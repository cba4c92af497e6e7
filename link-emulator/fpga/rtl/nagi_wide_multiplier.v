// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * Product of two unsigned 64-bit numbers, from four products of a nagi_multiplier, which is
 * outside. It takes 8 clocks from start to done; the operands must not change meanwhile.
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
    input  wire [63:0]   partial   // three clocks after its factors
);

// Which product is asked for: low x low, low x high, high x low, high x high.
reg [2:0] step_reg = 0;
reg busy_reg = 1'b0;
reg done_reg = 1'b0;
reg [127:0] sum_reg = 0;

assign done = done_reg;
assign product = sum_reg;
assign factor_a = step_reg[1] ? a[63:32] : a[31:0];
assign factor_b = step_reg[0] ? b[63:32] : b[31:0];

always @(posedge clk) begin
    done_reg <= 1'b0;
    if (start) begin
        busy_reg <= 1'b1;
        step_reg <= 0;
    end else if (busy_reg) begin
        step_reg <= step_reg + 1'b1;
        case (step_reg)
            3'd3: sum_reg <= {64'd0, partial};
            // The sum of the first three is below 2^98.
            3'd4, 3'd5: sum_reg[97:32] <= sum_reg[97:32] + {2'd0, partial};
            3'd6: begin
                sum_reg[127:64] <= sum_reg[127:64] + partial;
                busy_reg <= 1'b0;
                done_reg <= 1'b1;
            end
            default: ;
        endcase
    end
    if (rst) begin
        busy_reg <= 1'b0;
        done_reg <= 1'b0;
    end
end

endmodule

`resetall
