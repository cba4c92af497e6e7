// SPDX-License-Identifier: Apache-2.0

/*
 * Sums, differences and comparisons of all kinds, as test input for the map in boards/arithmetic.v.
 */
module sums #
(
    parameter WIDTH = 7
)
(
    input  wire        [WIDTH-1:0]  a,
    input  wire        [WIDTH-1:0]  b,
    input  wire        [3:0]        few,
    input  wire                     one,
    input  wire signed [WIDTH-2:0]  signed_a,
    input  wire signed [WIDTH-2:0]  signed_b,

    output wire        [WIDTH-1:0]  sum,
    output wire        [WIDTH:0]    carried,
    output wire        [WIDTH-1:0]  difference,
    output wire        [WIDTH-1:0]  next,
    output wire        [WIDTH-1:0]  more,
    output wire        [WIDTH-1:0]  mixed,
    output wire        [4:0]        compared
);

assign sum = a + b;
assign carried = a + b;
assign difference = a - b;
assign next = a + 1'b1;
assign more = a + few;
assign mixed = a + one - 5;
assign compared = {a < b, a <= b, a > few, a >= 5, signed_a < signed_b};

endmodule
