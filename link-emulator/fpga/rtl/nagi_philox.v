// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011), one draw
 * after the other: draw number `counter` of a stream as link-emulator/model/random.hpp has it. It
 * takes 52 clocks from start to done.
 */
module nagi_philox
(
    input  wire          clk,
    input  wire          rst,
    input  wire          start,
    // Index (64 bits) lowest, then link, then direction << 16 | purpose.
    input  wire [127:0]  counter,
    input  wire [63:0]   seed,
    output wire          done,
    output wire [63:0]   draw
);

localparam [31:0]
    MULTIPLIER_0 = 32'hD2511F53,
    MULTIPLIER_1 = 32'hCD9E8D57,
    KEY_STEP_0 = 32'h9E3779B9,
    KEY_STEP_1 = 32'hBB67AE85;

reg [31:0] word0_reg = 0;
reg [31:0] word1_reg = 0;
reg [31:0] word2_reg = 0;
reg [31:0] word3_reg = 0;
reg [31:0] key0_reg = 0;
reg [31:0] key1_reg = 0;
reg [63:0] first_reg = 0;  // the round's first product
reg [2:0] step_reg = 0;    // within a round
reg [3:0] round_reg = 0;
reg busy_reg = 1'b0;
reg done_reg = 1'b0;

wire [63:0] product;

assign done = done_reg;
assign draw = {word1_reg, word0_reg};

nagi_multiplier multiplier_inst (
    .clk(clk),
    .a(step_reg == 0 ? MULTIPLIER_0 : MULTIPLIER_1),
    .b(step_reg == 0 ? word0_reg : word2_reg),
    .product(product)
);

always @(posedge clk) begin
    done_reg <= 1'b0;
    if (start) begin
        {word3_reg, word2_reg, word1_reg, word0_reg} <= counter;
        {key1_reg, key0_reg} <= seed;
        step_reg <= 0;
        round_reg <= 0;
        busy_reg <= 1'b1;
    end else if (busy_reg) begin
        step_reg <= step_reg + 1'b1;
        if (step_reg == 3) begin
            first_reg <= product;
        end
        if (step_reg == 4) begin
            word0_reg <= product[63:32] ^ word1_reg ^ key0_reg;
            word1_reg <= product[31:0];
            word2_reg <= first_reg[63:32] ^ word3_reg ^ key1_reg;
            word3_reg <= first_reg[31:0];
            key0_reg <= key0_reg + KEY_STEP_0;
            key1_reg <= key1_reg + KEY_STEP_1;
            step_reg <= 0;
            round_reg <= round_reg + 1'b1;
            if (round_reg == 9) begin
                busy_reg <= 1'b0;
                done_reg <= 1'b1;
            end
        end
    end
    if (rst) begin
        busy_reg <= 1'b0;
        done_reg <= 1'b0;
    end
end

endmodule

`resetall
