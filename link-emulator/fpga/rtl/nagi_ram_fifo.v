// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * FIFO in block RAM. What is first is at the output, without being asked for. It takes a word every
 * clock and gives one every other clock, of which some are in registers and distributed memory, so
 * that neither the RAM's output nor its input depends on whoever takes them. `room`: words that it
 * still takes at least.
 */
module nagi_ram_fifo #
(
    parameter WIDTH = 64,
    // log2 of the words.
    parameter DEPTH_WIDTH = 9
)
(
    input  wire                  clk,
    input  wire                  rst,

    input  wire [WIDTH-1:0]      s_data,
    input  wire                  s_valid,

    output wire [WIDTH-1:0]      m_data,
    output wire                  m_valid,
    input  wire                  m_ready,

    output wire [DEPTH_WIDTH:0]  room
);

localparam AHEAD_WIDTH = 4;
// Of the words that have been fetched: until has_credit_reg knows, two more may be.
localparam [AHEAD_WIDTH:0] MAX_AHEAD = (1 << AHEAD_WIDTH) - 4;

reg [DEPTH_WIDTH:0] write_ptr_reg = 0;
reg [DEPTH_WIDTH:0] read_ptr_reg = 0;
reg [DEPTH_WIDTH:0] room_reg = {1'b1, {DEPTH_WIDTH{1'b0}}};
reg [AHEAD_WIDTH:0] ahead_reg = 0;
reg has_credit_reg = 1'b0;
reg fetch_reg = 1'b0;
reg is_read_reg = 1'b0;   // a word is at the RAM's output
reg is_ahead_reg = 1'b0;  // and in word_reg
reg [WIDTH-1:0] word_reg = 0;

wire [WIDTH-1:0] read_word;
wire ahead_ready;
wire unused = &{1'b0, ahead_ready};

assign room = room_reg;

nagi_ram #(.WIDTH(WIDTH), .ADDR_WIDTH(DEPTH_WIDTH)) ram_inst (
    .clk(clk),
    .wr_en(s_valid),
    .wr_addr(write_ptr_reg[DEPTH_WIDTH-1:0]),
    .wr_data(s_data),
    .rd_en(fetch_reg),
    .rd_addr(read_ptr_reg[DEPTH_WIDTH-1:0]),
    .rd_data(read_word)
);

nagi_registered_fifo #(.WIDTH(WIDTH), .DEPTH_WIDTH(AHEAD_WIDTH)) ahead_inst (
    .clk(clk),
    .rst(rst),
    .s_data(word_reg),
    .s_valid(is_ahead_reg),
    .s_ready(ahead_ready),
    .m_data(m_data),
    .m_valid(m_valid),
    .m_ready(m_ready)
);

always @(posedge clk) begin
    fetch_reg <= !fetch_reg && has_credit_reg && write_ptr_reg != read_ptr_reg;
    is_read_reg <= fetch_reg;
    is_ahead_reg <= is_read_reg;
    word_reg <= read_word;
    has_credit_reg <= ahead_reg <= MAX_AHEAD;
    ahead_reg <= ahead_reg + {{AHEAD_WIDTH{1'b0}}, fetch_reg} -
        {{AHEAD_WIDTH{1'b0}}, m_valid && m_ready};

    if (s_valid) begin
        write_ptr_reg <= write_ptr_reg + 1'b1;
    end
    if (fetch_reg) begin
        read_ptr_reg <= read_ptr_reg + 1'b1;
    end
    if (s_valid && !fetch_reg) begin
        room_reg <= room_reg - 1'b1;
    end else if (fetch_reg && !s_valid) begin
        room_reg <= room_reg + 1'b1;
    end
    if (rst) begin
        write_ptr_reg <= 0;
        read_ptr_reg <= 0;
        room_reg <= {1'b1, {DEPTH_WIDTH{1'b0}}};
        ahead_reg <= 0;
        has_credit_reg <= 1'b0;
        fetch_reg <= 1'b0;
        is_read_reg <= 1'b0;
        is_ahead_reg <= 1'b0;
    end
end

endmodule

`resetall
