// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * Quotient and remainder of unsigned numbers, BITS of the quotient a clock, the highest first. It
 * takes DIVIDEND_WIDTH / BITS clocks, rounded up, and one, from start to done. Without BITS = 1 the
 * subtractions of a clock are one after the other: that is for simulation.
 */
module nagi_divider #
(
    parameter DIVIDEND_WIDTH = 51,
    parameter DIVISOR_WIDTH = 40,
    parameter BITS = 1
)
(
    input  wire                       clk,
    input  wire                       rst,
    input  wire                       start,
    input  wire [DIVIDEND_WIDTH-1:0]  dividend,
    input  wire [DIVISOR_WIDTH-1:0]   divisor,  // must not change meanwhile
    output wire                       done,
    output wire [DIVIDEND_WIDTH-1:0]  quotient,
    output wire [DIVISOR_WIDTH-1:0]   remainder
);

localparam STEPS = (DIVIDEND_WIDTH + BITS - 1) / BITS;
localparam WIDTH = STEPS * BITS;
localparam COUNT_WIDTH = $clog2(STEPS + 1);

// Bits of the dividend leave to the left, those of the quotient come in from the right.
reg [WIDTH-1:0] shift_reg = 0;
reg [DIVISOR_WIDTH-1:0] remainder_reg = 0;
reg [COUNT_WIDTH-1:0] steps_reg = 0;
reg busy_reg = 1'b0;
reg done_reg = 1'b0;

reg [WIDTH-1:0] shift_next;
reg [DIVISOR_WIDTH-1:0] remainder_next;
reg [DIVISOR_WIDTH:0] candidate;
reg [DIVISOR_WIDTH+1:0] difference;
integer i;

assign done = done_reg;
assign quotient = shift_reg[DIVIDEND_WIDTH-1:0];
assign remainder = remainder_reg;

always @* begin
    shift_next = shift_reg;
    remainder_next = remainder_reg;
    candidate = 0;
    difference = 0;
    for (i = 0; i < BITS; i = i + 1) begin
        candidate = {remainder_next, shift_next[WIDTH-1]};
        difference = {1'b0, candidate} - {2'b00, divisor};
        shift_next = {shift_next[WIDTH-2:0], !difference[DIVISOR_WIDTH+1]};
        remainder_next = difference[DIVISOR_WIDTH+1] ? candidate[DIVISOR_WIDTH-1:0] :
            difference[DIVISOR_WIDTH-1:0];
    end
end

always @(posedge clk) begin
    done_reg <= 1'b0;
    if (start) begin
        shift_reg <= {{WIDTH-DIVIDEND_WIDTH{1'b0}}, dividend};
        remainder_reg <= 0;
        steps_reg <= STEPS[COUNT_WIDTH-1:0];
        busy_reg <= 1'b1;
    end else if (busy_reg) begin
        shift_reg <= shift_next;
        remainder_reg <= remainder_next;
        steps_reg <= steps_reg - 1'b1;
        if (steps_reg == 1) begin
            busy_reg <= 1'b0;
            done_reg <= 1'b1;
        end
    end
    if (rst) begin
        busy_reg <= 1'b0;
        done_reg <= 1'b0;
    end
end

endmodule

`resetall
