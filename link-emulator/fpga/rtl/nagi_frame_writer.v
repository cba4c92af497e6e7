// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * Moves frames that were let in from where they came in to packet memory, marked if they are to be,
 * and lets go of the others.
 */
module nagi_frame_writer #
(
    parameter MEM_WIDTH = 64,
    parameter ADDR_WIDTH = 13,
    parameter STAGE_WIDTH = 9
)
(
    input  wire                    clk,
    input  wire                    rst,

    // What becomes of the next frame.
    input  wire                    verdict_valid,
    output wire                    verdict_ready,
    input  wire                    verdict_let_in,
    input  wire                    verdict_marked,
    input  wire [15:0]             frame_bytes,
    input  wire                    is_ipv4,
    input  wire [9:0]              ip_at,
    input  wire [15:0]             ip_word,
    input  wire [15:0]             marked_checksum,

    // Where frames come in.
    output wire                    stage_read_en,
    output wire [STAGE_WIDTH-1:0]  stage_read_addr,
    input  wire [MEM_WIDTH-1:0]    stage_read_data,
    output wire                    stage_free,
    output wire [STAGE_WIDTH:0]    stage_free_words,

    output wire [ADDR_WIDTH-1:0]   write_addr,
    output wire [MEM_WIDTH-1:0]    write_data,
    output wire                    write_valid,
    input  wire                    write_ready,

    // All words of a frame have been given to the memory.
    output wire                    written
);

localparam WORD_BYTES = MEM_WIDTH / 8;
localparam HALVES = MEM_WIDTH / 16;
localparam [15:0] ECN_IPV4 = 16'h0003;
localparam [15:0] ECN_IPV6 = 16'h0030;
localparam [9:0] CHECKSUM_AT = 10'd5;

reg busy_reg = 1'b0;
reg [STAGE_WIDTH:0] words_reg = 0;
reg [STAGE_WIDTH:0] fetched_reg = 0;
reg [STAGE_WIDTH:0] given_reg = 0;
reg [STAGE_WIDTH-1:0] read_ptr_reg = 0;
reg [ADDR_WIDTH-1:0] write_ptr_reg = 0;
reg fetched_valid_reg = 1'b0;  // a word is at the output of the RAM
reg out_valid_reg = 1'b0;
reg [MEM_WIDTH-1:0] out_reg = 0;
reg marked_reg = 1'b0;
reg marked_ipv4_reg = 1'b0;
reg [9:0] word_at_reg = 0;  // halfwords of the frame before this word; stays where no header is
reg [9:0] ip_at_reg = 0;
reg [9:0] checksum_at_reg = 0;
reg [15:0] word_reg = 0;
reg [15:0] checksum_reg = 0;
reg free_reg = 1'b0;
reg written_reg = 1'b0;

reg [MEM_WIDTH-1:0] patched;
integer i;

wire [15:0] words = (frame_bytes + WORD_BYTES[15:0] - 16'd1) / WORD_BYTES[15:0];
wire unused = &{1'b0, words};
wire take = out_valid_reg && write_ready;
wire moves = fetched_valid_reg && (!out_valid_reg || take);
wire fetch = busy_reg && fetched_reg != words_reg && (!fetched_valid_reg || moves);
wire is_last = given_reg + 1'b1 == words_reg;

assign verdict_ready = !busy_reg;
assign stage_read_en = fetch;
assign stage_read_addr = read_ptr_reg;
assign stage_free = free_reg;
assign stage_free_words = words_reg;
assign write_addr = write_ptr_reg;
assign write_data = patched;
assign write_valid = out_valid_reg;
assign written = written_reg;

always @* begin
    patched = out_reg;
    for (i = 0; i < HALVES; i = i + 1) begin
        if (marked_reg && word_at_reg + i[9:0] == ip_at_reg) begin
            patched[i*16 +: 16] = {word_reg[7:0], word_reg[15:8]};
        end
        if (marked_ipv4_reg && word_at_reg + i[9:0] == checksum_at_reg) begin
            patched[i*16 +: 16] = {checksum_reg[7:0], checksum_reg[15:8]};
        end
    end
end

always @(posedge clk) begin
    free_reg <= 1'b0;
    written_reg <= 1'b0;

    if (!busy_reg) begin
        if (verdict_valid) begin
            words_reg <= words[STAGE_WIDTH:0];
            fetched_reg <= 0;
            given_reg <= 0;
            word_at_reg <= 0;
            marked_reg <= verdict_marked;
            marked_ipv4_reg <= verdict_marked && is_ipv4;
            ip_at_reg <= ip_at;
            checksum_at_reg <= ip_at + CHECKSUM_AT;
            word_reg <= ip_word | (is_ipv4 ? ECN_IPV4 : ECN_IPV6);
            checksum_reg <= marked_checksum;
            if (verdict_let_in) begin
                busy_reg <= 1'b1;
            end else begin
                read_ptr_reg <= read_ptr_reg + words[STAGE_WIDTH-1:0];
                free_reg <= 1'b1;
            end
        end
    end else begin
        if (fetch) begin
            fetched_reg <= fetched_reg + 1'b1;
            read_ptr_reg <= read_ptr_reg + 1'b1;
            fetched_valid_reg <= 1'b1;
        end else if (moves) begin
            fetched_valid_reg <= 1'b0;
        end
        if (moves) begin
            out_reg <= stage_read_data;
            out_valid_reg <= 1'b1;
        end else if (take) begin
            out_valid_reg <= 1'b0;
        end
        if (take) begin
            write_ptr_reg <= write_ptr_reg + 1'b1;
            given_reg <= given_reg + 1'b1;
            word_at_reg <= word_at_reg + HALVES[9:0];
            if (&word_at_reg[9:5]) begin
                marked_reg <= 1'b0;
                marked_ipv4_reg <= 1'b0;
            end
            if (is_last) begin
                busy_reg <= 1'b0;
                free_reg <= 1'b1;
                written_reg <= 1'b1;
            end
        end
    end

    if (rst) begin
        busy_reg <= 1'b0;
        fetched_valid_reg <= 1'b0;
        out_valid_reg <= 1'b0;
        read_ptr_reg <= 0;
        write_ptr_reg <= 0;
        free_reg <= 1'b0;
        written_reg <= 1'b0;
    end
end

endmodule

`resetall
