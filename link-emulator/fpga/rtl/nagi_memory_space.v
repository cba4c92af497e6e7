// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * Counts the packets and words that packet memory holds, including packets on the way to the
 * memory, and reports whether there is space for one more packet.
 */
module nagi_memory_space #
(
    // log2 of the maximum number of packets.
    parameter QUEUE_DEPTH_WIDTH = 10,
    // log2 of the words of packet memory.
    parameter ADDR_WIDTH = 13
)
(
    input  wire                        clk,
    input  wire                        rst,

    // The packet that arrives. `let_in`: the packet is admitted and takes its words.
    input  wire                        let_in,
    input  wire [15:0]                 words,

    // A packet has left packet memory and frees this number of words.
    input  wire                        free_valid,
    input  wire [15:0]                 free_words,

    // Packets that are held.
    output wire [QUEUE_DEPTH_WIDTH:0]  held,
    // 1: there is space for the packet that arrives. The output is one clock late.
    output wire                        has_space
);

// Width of a number of words of packet memory.
localparam SPACE_WIDTH = ADDR_WIDTH < 16 ? 17 : ADDR_WIDTH + 1;
localparam [SPACE_WIDTH-1:0] SPACE = {{SPACE_WIDTH-1{1'b0}}, 1'b1} << ADDR_WIDTH;

reg [QUEUE_DEPTH_WIDTH:0] held_reg = 0;
reg [SPACE_WIDTH-1:0] free_words_reg = SPACE;
reg [15:0] taken_words_reg = 0;  // words taken in the previous clock
reg [15:0] freed_words_reg = 0;
reg [SPACE_WIDTH-1:0] free_change_reg = 0;
reg has_space_reg = 1'b0;

wire is_full = held_reg[QUEUE_DEPTH_WIDTH];

assign held = held_reg;
assign has_space = has_space_reg;

always @(posedge clk) begin
    held_reg <= held_reg + {{QUEUE_DEPTH_WIDTH{1'b0}}, let_in} -
        {{QUEUE_DEPTH_WIDTH{1'b0}}, free_valid};
    // free_words_reg is three clocks late. The next packet is examined later than that.
    taken_words_reg <= let_in ? words : 16'd0;
    freed_words_reg <= free_valid ? free_words : 16'd0;
    free_change_reg <= {{SPACE_WIDTH-16{1'b0}}, freed_words_reg} -
        {{SPACE_WIDTH-16{1'b0}}, taken_words_reg};
    free_words_reg <= free_words_reg + free_change_reg;
    has_space_reg <= {{SPACE_WIDTH-16{1'b0}}, words} <= free_words_reg && !is_full;

    if (rst) begin
        held_reg <= 0;
        free_words_reg <= SPACE;
        taken_words_reg <= 0;
        freed_words_reg <= 0;
        free_change_reg <= 0;
    end
end

endmodule

`resetall
