// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * Computes -ln(u) for u = (draw + 1) / 2^64, with 40 fractional bits, like exponential_q40() of
 * link-emulator/model/random.cpp. Repeated squaring yields the binary logarithm, one bit per
 * square. The logarithm is then scaled by ln 2. A nagi_wide_multiplier outside this module computes
 * the products. A result takes about 370 clocks, plus one for each leading zero of draw + 1.
 */
module nagi_exponential
(
    input  wire          clk,
    input  wire          rst,
    input  wire          start,
    input  wire [63:0]   draw,
    output wire          done,
    output wire [45:0]   value,

    output wire          multiply,
    output wire [63:0]   multiply_a,
    output wire [63:0]   multiply_b,
    input  wire          multiplied,
    input  wire [127:0]  product
);

localparam [63:0] LN2_Q64 = 64'hB17217F7D1CF79AB;
localparam FRACTION_BITS = 40;

// The state is one-hot; these are its bits.
localparam
    IDLE = 0,
    NORMALIZE = 1,
    SQUARE = 2,
    LOGARITHM = 3,
    SCALE = 4,
    INCREMENT = 5;

localparam [5:0]
    STATE_IDLE = 6'd1 << IDLE,
    STATE_NORMALIZE = 6'd1 << NORMALIZE,
    STATE_SQUARE = 6'd1 << SQUARE,
    STATE_LOGARITHM = 6'd1 << LOGARITHM,
    STATE_SCALE = 6'd1 << SCALE,
    STATE_INCREMENT = 6'd1 << INCREMENT;

reg [5:0] state_reg = STATE_IDLE;
reg [63:0] mantissa_reg = 0;  // 63 fractional bits
reg [5:0] integer_reg = 0;    // integer part of log2(draw + 1)
reg [FRACTION_BITS-1:0] fraction_reg = 0;
reg [5:0] bits_reg = 0;
reg [46:0] log2_u_reg = 0;    // absolute value of log2(u), which is below 0
reg [45:0] value_reg = 0;
reg is_zero_reg = 1'b0;       // value is 0, and value_reg is ignored
reg multiply_reg = 1'b0;
reg done_reg = 1'b0;
reg start_reg = 1'b0;
reg is_one_reg = 1'b0;        // u is 1

wire unused = &{1'b0, product[62:0]};

assign done = done_reg;
assign value = value_reg & {46{!is_zero_reg}};
assign multiply = multiply_reg;
assign multiply_a = state_reg[SCALE] ? {17'd0, log2_u_reg} : mantissa_reg;
assign multiply_b = state_reg[SCALE] ? LN2_Q64 : mantissa_reg;

always @(posedge clk) begin
    done_reg <= 1'b0;
    multiply_reg <= 1'b0;
    start_reg <= start;
    is_one_reg <= &draw;
    if (!(state_reg[NORMALIZE] && mantissa_reg[63])) begin
        // If a square is at least 2, the next bit of the logarithm is 1. The register follows the
        // product all the time, and its value is used once the product is valid.
        mantissa_reg <= state_reg[IDLE] ? draw :
            state_reg[INCREMENT] ? mantissa_reg + 1'b1 :
            state_reg[NORMALIZE] ? {mantissa_reg[62:0], 1'b0} :
            product[127] ? product[127:64] : product[126:63];
    end
    (* parallel_case *)
    case (1'b1)
        state_reg[IDLE]: begin
            integer_reg <= 6'd63;
            if (start_reg) begin
                is_zero_reg <= is_one_reg;
                if (is_one_reg) begin
                    done_reg <= 1'b1;
                end else begin
                    state_reg <= STATE_INCREMENT;
                end
            end
        end
        state_reg[INCREMENT]: begin
            state_reg <= STATE_NORMALIZE;
        end
        state_reg[NORMALIZE]: begin
            if (mantissa_reg[63]) begin
                bits_reg <= FRACTION_BITS[5:0];
                multiply_reg <= 1'b1;
                state_reg <= STATE_SQUARE;
            end else begin
                integer_reg <= integer_reg - 1'b1;
            end
        end
        state_reg[SQUARE]: begin
            if (multiplied) begin
                fraction_reg <= {fraction_reg[FRACTION_BITS-2:0], product[127]};
                bits_reg <= bits_reg - 1'b1;
                if (bits_reg == 1) begin
                    state_reg <= STATE_LOGARITHM;
                end else begin
                    multiply_reg <= 1'b1;
                end
            end
        end
        state_reg[LOGARITHM]: begin
            log2_u_reg <= {7'd64, 40'd0} - {1'b0, integer_reg, fraction_reg};
            multiply_reg <= 1'b1;
            state_reg <= STATE_SCALE;
        end
        state_reg[SCALE]: begin
            value_reg <= product[109:64];
            if (multiplied) begin
                done_reg <= 1'b1;
                state_reg <= STATE_IDLE;
            end
        end
        default: state_reg <= STATE_IDLE;
    endcase
    if (rst) begin
        state_reg <= STATE_IDLE;
        start_reg <= 1'b0;
        multiply_reg <= 1'b0;
        done_reg <= 1'b0;
    end
end

endmodule

`resetall
