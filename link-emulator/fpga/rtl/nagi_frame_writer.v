// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * Moves frames that the model admits from the ingress buffer to packet memory, and marks them if
 * the model requests it. All other frames are removed from the ingress buffer.
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

    // The verdict on the next frame.
    input  wire                    verdict_valid,
    output wire                    verdict_ready,
    input  wire                    verdict_let_in,
    input  wire                    verdict_marked,
    input  wire [15:0]             frame_bytes,
    input  wire                    is_ipv4,
    input  wire [9:0]              ip_at,
    input  wire [15:0]             ip_word,
    input  wire [15:0]             marked_checksum,

    // The ingress buffer.
    output wire                    stage_read_en,
    output wire [STAGE_WIDTH-1:0]  stage_read_addr,
    input  wire [MEM_WIDTH-1:0]    stage_read_data,
    output wire                    stage_free,
    output wire [STAGE_WIDTH:0]    stage_free_words,

    output wire [ADDR_WIDTH-1:0]   write_addr,
    output wire [MEM_WIDTH-1:0]    write_data,
    output wire                    write_valid,
    input  wire                    write_ready,

    // All words of a frame have been sent to the memory.
    output wire                    written
);

localparam WORD_BYTES = MEM_WIDTH / 8;
localparam HALVES = MEM_WIDTH / 16;
localparam HALVES_WIDTH = $clog2(HALVES);
localparam [9:0] LANE_MASK = HALVES[9:0] - 10'd1;
localparam [15:0] ECN_IPV4 = 16'h0003;
localparam [15:0] ECN_IPV6 = 16'h0030;
localparam [9:0] CHECKSUM_AT = 10'd5;
localparam [STAGE_WIDTH:0] ONE = {{STAGE_WIDTH{1'b0}}, 1'b1};

localparam [1:0]
    STATE_IDLE = 2'd0,
    STATE_COUNT = 2'd1,
    STATE_SKIP = 2'd2,
    STATE_MOVE = 2'd3;

reg [1:0] state_reg = STATE_IDLE;
reg let_in_reg = 1'b0;
reg [15:0] bytes_reg = 0;
reg [STAGE_WIDTH:0] words_reg = 0;
reg [STAGE_WIDTH:0] to_fetch_reg = 0;
reg [STAGE_WIDTH:0] to_give_reg = 0;
reg fetches_reg = 1'b0;        // to_fetch_reg is not 0
reg is_last_reg = 1'b0;        // to_give_reg is 1
reg [STAGE_WIDTH-1:0] read_ptr_reg = 0;
reg [ADDR_WIDTH-1:0] write_ptr_reg = 0;
reg fetched_valid_reg = 1'b0;  // a word is at the output of the RAM
reg out_valid_reg = 1'b0;
reg [MEM_WIDTH-1:0] out_reg = 0;
reg marked_reg = 1'b0;
reg marked_ipv4_reg = 1'b0;
// Indices of the halfwords that a mark changes, and the halfwords of out_reg that are replaced.
reg [9:0] ip_at_reg = 0;
reg [9:0] checksum_at_reg = 0;
reg [9:0] moved_reg = 0;  // number of words of the frame that were moved; saturates
reg [HALVES-1:0] patches_ip_reg = 0;
reg [HALVES-1:0] patches_checksum_reg = 0;
reg [15:0] word_reg = 0;
reg [15:0] checksum_reg = 0;
reg free_reg = 1'b0;
reg written_reg = 1'b0;

reg [MEM_WIDTH-1:0] patched;
integer i;
integer k;

wire [15:0] words = (bytes_reg + WORD_BYTES[15:0] - 16'd1) / WORD_BYTES[15:0];
wire unused = &{1'b0, words};
wire take = out_valid_reg && write_ready;
wire moves = fetched_valid_reg && (!out_valid_reg || write_ready);
wire fetch = fetches_reg && (!fetched_valid_reg || !out_valid_reg || write_ready);

assign verdict_ready = state_reg == STATE_IDLE;
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
        if (patches_ip_reg[i]) begin
            patched[i*16 +: 16] = {word_reg[7:0], word_reg[15:8]};
        end
        if (patches_checksum_reg[i]) begin
            patched[i*16 +: 16] = {checksum_reg[7:0], checksum_reg[15:8]};
        end
    end
end

always @(posedge clk) begin
    free_reg <= 1'b0;
    written_reg <= 1'b0;

    case (state_reg)
        STATE_IDLE: begin
            let_in_reg <= verdict_let_in;
            bytes_reg <= frame_bytes;
            moved_reg <= 0;
            marked_reg <= verdict_marked;
            marked_ipv4_reg <= verdict_marked && is_ipv4;
            ip_at_reg <= ip_at;
            checksum_at_reg <= ip_at + CHECKSUM_AT;
            word_reg <= ip_word | (is_ipv4 ? ECN_IPV4 : ECN_IPV6);
            checksum_reg <= marked_checksum;
            if (verdict_valid) begin
                state_reg <= STATE_COUNT;
            end
        end
        STATE_COUNT: begin
            words_reg <= words[STAGE_WIDTH:0];
            to_fetch_reg <= words[STAGE_WIDTH:0];
            to_give_reg <= words[STAGE_WIDTH:0];
            is_last_reg <= words[STAGE_WIDTH:0] == ONE;
            fetches_reg <= let_in_reg;
            state_reg <= let_in_reg ? STATE_MOVE : STATE_SKIP;
        end
        STATE_SKIP: begin
            free_reg <= 1'b1;
            state_reg <= STATE_IDLE;
        end
        STATE_MOVE: begin
            if (take && is_last_reg) begin
                free_reg <= 1'b1;
                written_reg <= 1'b1;
                state_reg <= STATE_IDLE;
            end
        end
        default: state_reg <= STATE_IDLE;
    endcase

    if (fetch) begin
        to_fetch_reg <= to_fetch_reg - ONE;
        fetches_reg <= to_fetch_reg != ONE;
        fetched_valid_reg <= 1'b1;
    end else if (moves) begin
        fetched_valid_reg <= 1'b0;
    end
    if (state_reg == STATE_SKIP) begin
        read_ptr_reg <= read_ptr_reg + words_reg[STAGE_WIDTH-1:0];
    end else if (fetch) begin
        read_ptr_reg <= read_ptr_reg + 1'b1;
    end
    if (moves) begin
        out_reg <= stage_read_data;
        out_valid_reg <= 1'b1;
        if (!(&moved_reg)) begin
            moved_reg <= moved_reg + 1'b1;
        end
        for (k = 0; k < HALVES; k = k + 1) begin
            patches_ip_reg[k] <= marked_reg && moved_reg == ip_at_reg >> HALVES_WIDTH &&
                (ip_at_reg & LANE_MASK) == k[9:0];
            patches_checksum_reg[k] <= marked_ipv4_reg &&
                moved_reg == checksum_at_reg >> HALVES_WIDTH &&
                (checksum_at_reg & LANE_MASK) == k[9:0];
        end
    end else if (take) begin
        out_valid_reg <= 1'b0;
    end
    if (take) begin
        write_ptr_reg <= write_ptr_reg + 1'b1;
        to_give_reg <= to_give_reg - ONE;
        is_last_reg <= to_give_reg == ONE + ONE;
    end

    if (rst) begin
        state_reg <= STATE_IDLE;
        fetches_reg <= 1'b0;
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
