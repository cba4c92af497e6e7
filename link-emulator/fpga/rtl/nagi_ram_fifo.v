// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * FIFO in block RAM. The first word is at the output without a request. The FIFO takes one word per
 * clock and outputs one word every second clock. At least `room` more words fit.
 */
module nagi_ram_fifo #
(
    parameter WIDTH = 64,
    // log2 of the number of words.
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

reg [DEPTH_WIDTH:0] write_ptr_reg = 0;
reg [DEPTH_WIDTH:0] read_ptr_reg = 0;
reg [DEPTH_WIDTH:0] room_reg = {1'b1, {DEPTH_WIDTH{1'b0}}};
reg fetch_reg = 1'b0;
reg is_read_reg = 1'b0;   // a word is at the output of the RAM
reg [WIDTH-1:0] data_reg = 0;
reg valid_reg = 1'b0;

wire [WIDTH-1:0] read_word;
wire moves = !valid_reg || m_ready;

assign room = room_reg;
assign m_data = data_reg;
assign m_valid = valid_reg;

nagi_ram #(.WIDTH(WIDTH), .ADDR_WIDTH(DEPTH_WIDTH)) ram_inst (
    .clk(clk),
    .wr_en(s_valid),
    .wr_addr(write_ptr_reg[DEPTH_WIDTH-1:0]),
    .wr_data(s_data),
    .rd_en(fetch_reg),
    .rd_addr(read_ptr_reg[DEPTH_WIDTH-1:0]),
    .rd_data(read_word)
);

always @(posedge clk) begin
    fetch_reg <= !fetch_reg && (!is_read_reg || moves) && write_ptr_reg != read_ptr_reg;
    is_read_reg <= fetch_reg || (is_read_reg && !moves);
    if (moves) begin
        data_reg <= read_word;
        valid_reg <= is_read_reg;
    end

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
        fetch_reg <= 1'b0;
        is_read_reg <= 1'b0;
        valid_reg <= 1'b0;
    end
end

endmodule

`resetall
