// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * FIFO in block RAM. What is first is at the output, without being asked for. It takes a word and
 * gives a word every clock. `room`: words that it still takes at least.
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

reg [DEPTH_WIDTH:0] write_ptr_reg = 0;
reg [DEPTH_WIDTH:0] read_ptr_reg = 0;
reg [DEPTH_WIDTH:0] room_reg = {1'b1, {DEPTH_WIDTH{1'b0}}};
reg out_valid_reg = 1'b0;

wire take = m_valid && m_ready;
// The RAM's output register holds what is first.
wire fetch = write_ptr_reg != read_ptr_reg && (!out_valid_reg || take);

assign m_valid = out_valid_reg;
assign room = room_reg;

nagi_ram #(.WIDTH(WIDTH), .ADDR_WIDTH(DEPTH_WIDTH)) ram_inst (
    .clk(clk),
    .wr_en(s_valid),
    .wr_addr(write_ptr_reg[DEPTH_WIDTH-1:0]),
    .wr_data(s_data),
    .rd_en(fetch),
    .rd_addr(read_ptr_reg[DEPTH_WIDTH-1:0]),
    .rd_data(m_data)
);

always @(posedge clk) begin
    if (s_valid) begin
        write_ptr_reg <= write_ptr_reg + 1'b1;
    end
    if (fetch) begin
        read_ptr_reg <= read_ptr_reg + 1'b1;
        out_valid_reg <= 1'b1;
    end else if (take) begin
        out_valid_reg <= 1'b0;
    end
    if (s_valid && !fetch) begin
        room_reg <= room_reg - 1'b1;
    end else if (fetch && !s_valid) begin
        room_reg <= room_reg + 1'b1;
    end
    if (rst) begin
        write_ptr_reg <= 0;
        read_ptr_reg <= 0;
        room_reg <= {1'b1, {DEPTH_WIDTH{1'b0}}};
        out_valid_reg <= 1'b0;
    end
end

endmodule

`resetall
