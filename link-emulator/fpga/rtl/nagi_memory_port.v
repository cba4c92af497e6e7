// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * Joins the writer and the reader at one port of packet memory. If both request the port, they take
 * turns, clock by clock. A command stays until the memory takes it.
 */
module nagi_memory_port #
(
    parameter MEM_WIDTH = 64,
    parameter ADDR_WIDTH = 13
)
(
    input  wire                   clk,
    input  wire                   rst,

    input  wire [ADDR_WIDTH-1:0]  write_addr,
    input  wire [MEM_WIDTH-1:0]   write_data,
    input  wire                   write_valid,
    output wire                   write_ready,

    input  wire [ADDR_WIDTH-1:0]  read_addr,
    input  wire                   read_valid,
    output wire                   read_ready,

    output wire                   cmd_valid,
    input  wire                   cmd_ready,
    output wire                   cmd_we,
    output wire [ADDR_WIDTH-1:0]  cmd_addr,
    output wire                   wdata_valid,
    input  wire                   wdata_ready,
    output wire [MEM_WIDTH-1:0]   wdata,

    // 1: no command and no data wait for the memory.
    output wire                   idle
);

localparam DEPTH_WIDTH = 4;
// Limit of waiting words of data. has_room_reg is late, so two more words may come.
localparam [DEPTH_WIDTH:0] MAX_WAITING = (1 << DEPTH_WIDTH) - 4;

reg cmd_valid_reg = 1'b0;
reg cmd_we_reg = 1'b0;
reg [ADDR_WIDTH-1:0] cmd_addr_reg = 0;
// Register for a second command. A new command can be taken if this register is free; can_take_reg
// is 1 in that case.
reg spare_valid_reg = 1'b0;
reg can_take_reg = 1'b1;
reg spare_we_reg = 1'b0;
reg [ADDR_WIDTH-1:0] spare_addr_reg = 0;
reg is_turn_to_write_reg = 1'b0;
reg [DEPTH_WIDTH:0] waiting_reg = 0;
reg has_room_reg = 1'b0;
reg gone_reg = 1'b0;  // the memory took a word of data in the previous clock

wire data_ready;
wire can_take = can_take_reg;
wire takes_write = write_valid && write_ready;
wire takes_read = read_valid && read_ready;
wire unused = &{1'b0, data_ready};

wire may_write = write_valid && has_room_reg;

assign write_ready = can_take && has_room_reg && (is_turn_to_write_reg || !read_valid);
assign read_ready = can_take && (!is_turn_to_write_reg || !may_write);
assign cmd_valid = cmd_valid_reg;
assign cmd_we = cmd_we_reg;
assign cmd_addr = cmd_addr_reg;
assign idle = !cmd_valid_reg && !spare_valid_reg && !wdata_valid;

nagi_fifo #(.WIDTH(MEM_WIDTH), .DEPTH_WIDTH(DEPTH_WIDTH)) data_inst (
    .clk(clk),
    .rst(rst),
    .s_data(write_data),
    .s_valid(takes_write),
    .s_ready(data_ready),
    .m_data(wdata),
    .m_valid(wdata_valid),
    .m_ready(wdata_ready)
);

always @(posedge clk) begin
    has_room_reg <= waiting_reg <= MAX_WAITING;
    waiting_reg <= waiting_reg + {{DEPTH_WIDTH{1'b0}}, takes_write} -
        {{DEPTH_WIDTH{1'b0}}, gone_reg};
    gone_reg <= wdata_valid && wdata_ready;

    is_turn_to_write_reg <= !is_turn_to_write_reg;
    if (!cmd_valid_reg || cmd_ready) begin
        cmd_valid_reg <= spare_valid_reg || takes_write || takes_read;
        cmd_we_reg <= spare_valid_reg ? spare_we_reg : takes_write;
        cmd_addr_reg <= spare_valid_reg ? spare_addr_reg : takes_write ? write_addr : read_addr;
        spare_valid_reg <= 1'b0;
        can_take_reg <= 1'b1;
    end else if (takes_write || takes_read) begin
        spare_valid_reg <= 1'b1;
        can_take_reg <= 1'b0;
    end
    if (!spare_valid_reg) begin
        spare_we_reg <= takes_write;
        spare_addr_reg <= takes_write ? write_addr : read_addr;
    end
    if (rst) begin
        cmd_valid_reg <= 1'b0;
        spare_valid_reg <= 1'b0;
        can_take_reg <= 1'b1;
        is_turn_to_write_reg <= 1'b0;
        waiting_reg <= 0;
        gone_reg <= 1'b0;
        has_room_reg <= 1'b0;
    end
end

`ifdef FORMAL
`include "nagi_memory_port_properties.vh"
`endif

endmodule

`resetall
