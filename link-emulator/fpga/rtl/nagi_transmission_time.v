// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * Computes how long the rate server takes to transmit a packet. The state machine of
 * nagi_link_model controls the computation: `begins` for one clock, `multiplies` until
 * `multiplied`, `divides` for one clock, then a wait for `divided`. With an unlimited rate, the
 * time is 0, and the state machine skips the division.
 */
module nagi_transmission_time #
(
    parameter DIVIDER_BITS = 1
)
(
    input  wire         clk,
    input  wire         rst,

    // Configuration, as in registers.yaml. It is fixed while rst is 0.
    input  wire [39:0]  rate_bps,
    input  wire         unlimited_rate,
    input  wire [15:0]  overhead_bytes,

    // `begins`: a new packet of this size. framed_bytes is the size with overhead.
    input  wire         begins,
    input  wire [15:0]  bytes,
    output wire [16:0]  framed_bytes,

    input  wire         multiplies,
    output wire         multiplied,

    // `adds_left_over`: the packet follows another packet without a gap, so the remainder of the
    // last division is added. `keeps_remainder`: the remainder of this division is stored.
    input  wire         divides,
    input  wire         adds_left_over,
    input  wire         keeps_remainder,
    output wire         divided,

    // The time. The output is valid in the clock after `divided`.
    output wire [50:0]  air_ns
);

// At a rate of R bit/s, the server does R units of work per nanosecond. A bit is 10^9 units and a
// byte 8 x 10^9, which is 1,953,125 x 2^12. Multipliers have 18 bits, so 1,953,125 is split into
// 7 x 2^18 + 118,117.
localparam [17:0] WORK_A_BYTE_LOW = 18'd118117;
localparam WORK_WIDTH = 51;

reg [16:0] framed_reg = 0;
reg [34:0] low_product_reg = 0;
reg [19:0] seven_reg = 0;     // 7 x framed_reg
reg [37:0] product_reg = 0;
reg has_factors_reg = 1'b0;   // low_product_reg and seven_reg belong to framed_reg
reg [WORK_WIDTH-1:0] work_reg = 0;
reg start_division_reg = 1'b0;
reg [39:0] left_over_reg = 0;
reg [WORK_WIDTH-1:0] air_reg = 0;

wire [WORK_WIDTH-1:0] quotient;
wire [39:0] remainder;

assign framed_bytes = framed_reg;
assign multiplied = has_factors_reg;
assign air_ns = air_reg;

nagi_divider #(
    .DIVIDEND_WIDTH(WORK_WIDTH),
    .DIVISOR_WIDTH(40),
    .BITS(DIVIDER_BITS)
) divider_inst (
    .clk(clk),
    .rst(rst),
    .start(start_division_reg),
    .dividend(work_reg),
    .divisor(rate_bps),
    .done(divided),
    .quotient(quotient),
    .remainder(remainder)
);

always @(posedge clk) begin
    air_reg <= unlimited_rate ? {WORK_WIDTH{1'b0}} : quotient;
    start_division_reg <= divides && !unlimited_rate;

    if (begins) begin
        framed_reg <= {1'b0, bytes} + {1'b0, overhead_bytes};
        has_factors_reg <= 1'b0;
    end
    // The product is computed in two steps.
    if (multiplies) begin
        low_product_reg <= framed_reg * WORK_A_BYTE_LOW;
        seven_reg <= {framed_reg, 3'd0} - {3'd0, framed_reg};
        product_reg <= {3'd0, low_product_reg} + {seven_reg, 18'd0};
        has_factors_reg <= 1'b1;
    end
    if (divides) begin
        work_reg <= {1'b0, product_reg, 12'd0} +
            {11'd0, adds_left_over ? left_over_reg : 40'd0};
    end
    if (divided && keeps_remainder) begin
        left_over_reg <= remainder;
    end

    if (rst) begin
        start_division_reg <= 1'b0;
    end
end

endmodule

`resetall
