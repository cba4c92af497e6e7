// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). It
 * computes draw number `index` of two streams that differ in their purpose, as defined in
 * link-emulator/model/random.hpp. Each stream uses a nagi_multiplier outside this module. A draw
 * takes 30 clocks from start to done.
 */
module nagi_philox
(
    input  wire         clk,
    input  wire         rst,
    input  wire         start,
    input  wire [63:0]  index,
    input  wire [31:0]  link,
    input  wire [15:0]  part,       // part of the domain: the direction
    input  wire [15:0]  purpose_0,
    input  wire [15:0]  purpose_1,
    input  wire [63:0]  seed,
    output wire         busy,
    output wire         done,
    output wire [63:0]  draw_0,
    output wire [63:0]  draw_1,

    // Factors of both streams, of which the first is common, and their products one clock later.
    output wire [31:0]  factor,
    output wire [31:0]  factor_0,
    output wire [31:0]  factor_1,
    input  wire [63:0]  product_0,
    input  wire [63:0]  product_1
);

localparam [31:0]
    MULTIPLIER_0 = 32'hD2511F53,
    MULTIPLIER_1 = 32'hCD9E8D57,
    KEY_STEP_0 = 32'h9E3779B9,
    KEY_STEP_1 = 32'hBB67AE85;

// A round has three steps. The two products of a stream are requested in steps 0 and 1 and arrive
// in steps 1 and 2.
localparam STEPS = 3;
localparam [3:0] ROUNDS = 4'd10;

reg [127:0] first_reg = 0;   // words of the first stream, word 0 in the lowest bits
reg [127:0] second_reg = 0;
reg [63:0] key_reg = 0;
reg [63:0] low_0_reg = 0;    // product that arrived in the previous clock
reg [63:0] low_1_reg = 0;
reg [STEPS-1:0] step_reg = 0;  // one-hot
reg [3:0] round_reg = 0;
reg busy_reg = 1'b0;
reg done_reg = 1'b0;

assign busy = busy_reg;
assign done = done_reg;
assign draw_0 = first_reg[63:0];
assign draw_1 = second_reg[63:0];
assign factor = step_reg[0] ? MULTIPLIER_0 : MULTIPLIER_1;
assign factor_0 = step_reg[0] ? first_reg[31:0] : first_reg[95:64];
assign factor_1 = step_reg[0] ? second_reg[31:0] : second_reg[95:64];

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
    low_0_reg <= product_0;
    low_1_reg <= product_1;
    if (start) begin
        first_reg <= {part, purpose_0, link, index};
        second_reg <= {part, purpose_1, link, index};
        key_reg <= seed;
        step_reg <= {{STEPS-1{1'b0}}, 1'b1};
        round_reg <= 1;
        busy_reg <= 1'b1;
    end else begin
        // While the module is not busy, step_reg is 0.
        step_reg <= {step_reg[STEPS-2:0], step_reg[STEPS-1]};
        if (step_reg[2]) begin
            first_reg <= mixed(first_reg[63:32], first_reg[127:96], key_reg, low_0_reg,
                product_0);
            second_reg <= mixed(second_reg[63:32], second_reg[127:96], key_reg, low_1_reg,
                product_1);
            key_reg <= {key_reg[63:32] + KEY_STEP_1, key_reg[31:0] + KEY_STEP_0};
            round_reg <= round_reg + 1'b1;
            if (round_reg == ROUNDS) begin
                step_reg <= 0;
                busy_reg <= 1'b0;
                done_reg <= 1'b1;
            end
        end
    end
    if (rst) begin
        step_reg <= 0;
        busy_reg <= 1'b0;
        done_reg <= 1'b0;
    end
end

endmodule

`resetall
