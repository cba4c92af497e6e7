// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * All arithmetic modules in one module, for their tests.
 */
module arithmetic_bench
(
    input  wire          clk,
    input  wire          rst,

    input  wire          philox_start,
    input  wire [63:0]   philox_index,
    input  wire [31:0]   philox_link,
    input  wire [15:0]   philox_part,
    input  wire [15:0]   philox_purpose_0,
    input  wire [15:0]   philox_purpose_1,
    input  wire [63:0]   philox_seed,
    output wire          philox_busy,
    output wire          philox_done,
    output wire [63:0]   philox_draw_0,
    output wire [63:0]   philox_draw_1,

    input  wire          exponential_start,
    input  wire [63:0]   exponential_draw,
    output wire          exponential_done,
    output wire [45:0]   exponential_value,

    input  wire          divider_start,
    input  wire [50:0]   divider_dividend,
    input  wire [39:0]   divider_divisor,
    output wire          divider_done,
    output wire [50:0]   divider_quotient,
    output wire [39:0]   divider_remainder,

    // A divider that computes 8 bits of the quotient per clock.
    output wire          fast_divider_done,
    output wire [50:0]   fast_divider_quotient,
    output wire [39:0]   fast_divider_remainder,

    input  wire          multiplier_start,
    input  wire [63:0]   multiplier_a,
    input  wire [63:0]   multiplier_b,
    output wire          multiplier_done,
    output wire [127:0]  multiplier_product
);

wire [31:0] philox_factor;
wire [31:0] philox_factor_0;
wire [31:0] philox_factor_1;
wire [63:0] philox_product_0;
wire [63:0] philox_product_1;

nagi_philox philox_inst (
    .clk(clk),
    .rst(rst),
    .start(philox_start),
    .index(philox_index),
    .link(philox_link),
    .part(philox_part),
    .purpose_0(philox_purpose_0),
    .purpose_1(philox_purpose_1),
    .seed(philox_seed),
    .busy(philox_busy),
    .done(philox_done),
    .draw_0(philox_draw_0),
    .draw_1(philox_draw_1),
    .factor(philox_factor),
    .factor_0(philox_factor_0),
    .factor_1(philox_factor_1),
    .product_0(philox_product_0),
    .product_1(philox_product_1)
);

nagi_multiplier philox_multiplier_0_inst (
    .clk(clk),
    .a(philox_factor),
    .b(philox_factor_0),
    .product(philox_product_0)
);

nagi_multiplier philox_multiplier_1_inst (
    .clk(clk),
    .a(philox_factor),
    .b(philox_factor_1),
    .product(philox_product_1)
);

wire exponential_multiply;
wire [63:0] exponential_a;
wire [63:0] exponential_b;
wire exponential_multiplied;
wire [127:0] exponential_product;

nagi_exponential exponential_inst (
    .clk(clk),
    .rst(rst),
    .start(exponential_start),
    .draw(exponential_draw),
    .done(exponential_done),
    .value(exponential_value),
    .multiply(exponential_multiply),
    .multiply_a(exponential_a),
    .multiply_b(exponential_b),
    .multiplied(exponential_multiplied),
    .product(exponential_product)
);

nagi_divider divider_inst (
    .clk(clk),
    .rst(rst),
    .start(divider_start),
    .dividend(divider_dividend),
    .divisor(divider_divisor),
    .done(divider_done),
    .quotient(divider_quotient),
    .remainder(divider_remainder)
);

nagi_divider #(.BITS(8)) fast_divider_inst (
    .clk(clk),
    .rst(rst),
    .start(divider_start),
    .dividend(divider_dividend),
    .divisor(divider_divisor),
    .done(fast_divider_done),
    .quotient(fast_divider_quotient),
    .remainder(fast_divider_remainder)
);

wire [31:0] wide_factor_a;
wire [31:0] wide_factor_b;
wire [63:0] wide_partial;

nagi_wide_multiplier wide_inst (
    .clk(clk),
    .rst(rst),
    .start(multiplier_start),
    .a(multiplier_a),
    .b(multiplier_b),
    .done(multiplier_done),
    .product(multiplier_product),
    .factor_a(wide_factor_a),
    .factor_b(wide_factor_b),
    .partial(wide_partial)
);

nagi_multiplier wide_multiplier_inst (
    .clk(clk),
    .a(wide_factor_a),
    .b(wide_factor_b),
    .product(wide_partial)
);

wire [31:0] square_factor_a;
wire [31:0] square_factor_b;
wire [63:0] square_partial;

nagi_wide_multiplier square_inst (
    .clk(clk),
    .rst(rst),
    .start(exponential_multiply),
    .a(exponential_a),
    .b(exponential_b),
    .done(exponential_multiplied),
    .product(exponential_product),
    .factor_a(square_factor_a),
    .factor_b(square_factor_b),
    .partial(square_partial)
);

nagi_multiplier square_multiplier_inst (
    .clk(clk),
    .a(square_factor_a),
    .b(square_factor_b),
    .product(square_partial)
);

endmodule

`resetall
