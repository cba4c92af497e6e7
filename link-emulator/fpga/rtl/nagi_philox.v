// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): draw
 * number `index` of two streams that differ in their purpose, as link-emulator/model/random.hpp has
 * them. Both take turns at a nagi_multiplier, which is outside: 62 clocks from start to done.
 */
module nagi_philox
(
    input  wire         clk,
    input  wire         rst,
    input  wire         start,
    input  wire [63:0]  index,
    input  wire [31:0]  link,
    input  wire [15:0]  part,       // of the domain: the direction
    input  wire [15:0]  purpose_0,
    input  wire [15:0]  purpose_1,
    input  wire [63:0]  seed,
    output wire         busy,
    output wire         done,
    output wire [63:0]  draw_0,
    output wire [63:0]  draw_1,

    output wire [31:0]  factor_a,
    output wire [31:0]  factor_b,
    input  wire [63:0]  product     // four clocks after its factors
);

localparam [31:0]
    MULTIPLIER_0 = 32'hD2511F53,
    MULTIPLIER_1 = 32'hCD9E8D57,
    KEY_STEP_0 = 32'h9E3779B9,
    KEY_STEP_1 = 32'hBB67AE85;

// A round has six steps: its products are asked for in steps 0 to 3, those of the first stream come
// in steps 4 and 5, those of the second in steps 0 and 1 of what follows.
localparam STEPS = 6;
localparam [3:0] ROUNDS = 4'd10;

reg [127:0] first_reg = 0;   // words of the first stream, the lowest lowest
reg [127:0] second_reg = 0;
reg [63:0] key_reg = 0;
reg [63:0] product_reg = 0;  // a round's first product
reg [STEPS-1:0] step_reg = 0;  // one-hot
reg [3:0] round_reg = 0;
reg has_round_reg = 1'b0;      // is not 0
reg mixes_second_reg = 1'b0;   // in step 1, of all rounds but the first
reg is_last_round_reg = 1'b0;  // is ROUNDS
reg busy_reg = 1'b0;
reg done_reg = 1'b0;

reg [31:0] factor;

assign busy = busy_reg;
assign done = done_reg;
assign draw_0 = first_reg[63:0];
assign draw_1 = second_reg[63:0];
assign factor_a = step_reg[1] || step_reg[3] ? MULTIPLIER_1 : MULTIPLIER_0;
assign factor_b = factor;

always @* begin
    case (step_reg[2:0])
        3'b001: factor = first_reg[31:0];
        3'b010: factor = first_reg[95:64];
        3'b100: factor = second_reg[31:0];
        default: factor = second_reg[95:64];
    endcase
end

function [127:0] mixed;
    input [31:0] word_1;
    input [31:0] word_3;
    input [63:0] key;
    input [63:0] low;   // MULTIPLIER_0 x word 0
    input [63:0] high;  // MULTIPLIER_1 x word 2
    mixed = {low[31:0], low[63:32] ^ word_3 ^ key[63:32],
        high[31:0], high[63:32] ^ word_1 ^ key[31:0]};
endfunction

always @(posedge clk) begin
    done_reg <= 1'b0;
    if (start) begin
        first_reg <= {part, purpose_0, link, index};
        second_reg <= {part, purpose_1, link, index};
        key_reg <= seed;
        step_reg <= {{STEPS-1{1'b0}}, 1'b1};
        round_reg <= 0;
        has_round_reg <= 1'b0;
        is_last_round_reg <= 1'b0;
        mixes_second_reg <= 1'b0;
        busy_reg <= 1'b1;
    end else begin
        // No bit is set unless it is busy.
        step_reg <= {step_reg[STEPS-2:0], step_reg[STEPS-1]};
        mixes_second_reg <= step_reg[0] && has_round_reg;
        if (step_reg[4] || step_reg[0]) begin
            product_reg <= product;
        end
        if (step_reg[5]) begin
            first_reg <= mixed(first_reg[63:32], first_reg[127:96], key_reg, product_reg,
                product);
            round_reg <= round_reg + 1'b1;
            has_round_reg <= 1'b1;
            is_last_round_reg <= round_reg == ROUNDS - 1'b1;
        end
        if (mixes_second_reg) begin
            second_reg <= mixed(second_reg[63:32], second_reg[127:96], key_reg, product_reg,
                product);
            key_reg <= {key_reg[63:32] + KEY_STEP_1, key_reg[31:0] + KEY_STEP_0};
            if (is_last_round_reg) begin
                step_reg <= 0;
                busy_reg <= 1'b0;
                done_reg <= 1'b1;
            end
        end
    end
    if (rst) begin
        step_reg <= 0;
        mixes_second_reg <= 1'b0;
        busy_reg <= 1'b0;
        done_reg <= 1'b0;
    end
end

endmodule

`resetall
