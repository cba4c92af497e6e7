// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * Divider of unsigned numbers. It computes BITS bits of the quotient per clock, the highest bits
 * first. From start to done, it takes DIVIDEND_WIDTH / BITS clocks, rounded up, plus one. If the
 * upper half of the quotient is 0, it takes half of these clocks plus one. The subtractions of one
 * clock are chained.
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
    input  wire [DIVISOR_WIDTH-1:0]   divisor,  // must stay stable until done
    output wire                       done,
    output wire [DIVIDEND_WIDTH-1:0]  quotient,
    output wire [DIVISOR_WIDTH-1:0]   remainder
);

localparam STEPS = (DIVIDEND_WIDTH + BITS - 1) / BITS;
localparam WIDTH = STEPS * BITS;
localparam COUNT_WIDTH = $clog2(STEPS + 1);
// Steps and bits of the lower half of the quotient.
localparam LOW_STEPS = (STEPS + 1) / 2;
localparam LOW_WIDTH = LOW_STEPS * BITS;

// Bits of the dividend are shifted out at the left. Bits of the quotient are shifted in at the
// right.
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

wire [WIDTH-1:0] wide = {{WIDTH-DIVIDEND_WIDTH{1'b0}}, dividend};
wire [WIDTH+DIVISOR_WIDTH-1:0] high = {{DIVISOR_WIDTH{1'b0}}, wide >> LOW_WIDTH};
// If the upper half of the quotient is 0, its steps are skipped.
wire is_low = high < {{WIDTH{1'b0}}, divisor};
wire unused = &{1'b0, high};

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
        shift_reg <= is_low ? wide << (WIDTH - LOW_WIDTH) : wide;
        remainder_reg <= is_low ? high[DIVISOR_WIDTH-1:0] : 0;
        steps_reg <= is_low ? LOW_STEPS[COUNT_WIDTH-1:0] : STEPS[COUNT_WIDTH-1:0];
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
