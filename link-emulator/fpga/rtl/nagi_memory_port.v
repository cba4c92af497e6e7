// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * Joins who writes and who reads at one port of packet memory. Both at once take turns; a command
 * that the memory has not taken stays.
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

    // No command and no data waits for the memory.
    output wire                   idle
);

reg cmd_valid_reg = 1'b0;
reg cmd_we_reg = 1'b0;
reg [ADDR_WIDTH-1:0] cmd_addr_reg = 0;
reg wrote_last_reg = 1'b0;

wire data_ready;
wire can_take = !cmd_valid_reg || cmd_ready;
wire can_write = write_valid && data_ready;

assign write_ready = can_take && data_ready && (!read_valid || !wrote_last_reg);
assign read_ready = can_take && (!can_write || wrote_last_reg);
assign cmd_valid = cmd_valid_reg;
assign cmd_we = cmd_we_reg;
assign cmd_addr = cmd_addr_reg;
assign idle = !cmd_valid_reg && !wdata_valid;

nagi_fifo #(.WIDTH(MEM_WIDTH), .DEPTH_WIDTH(4)) data_inst (
    .clk(clk),
    .rst(rst),
    .s_data(write_data),
    .s_valid(write_valid && write_ready),
    .s_ready(data_ready),
    .m_data(wdata),
    .m_valid(wdata_valid),
    .m_ready(wdata_ready)
);

always @(posedge clk) begin
    if (cmd_ready) begin
        cmd_valid_reg <= 1'b0;
    end
    if (write_valid && write_ready) begin
        cmd_valid_reg <= 1'b1;
        cmd_we_reg <= 1'b1;
        cmd_addr_reg <= write_addr;
        wrote_last_reg <= 1'b1;
    end else if (read_valid && read_ready) begin
        cmd_valid_reg <= 1'b1;
        cmd_we_reg <= 1'b0;
        cmd_addr_reg <= read_addr;
        wrote_last_reg <= 1'b0;
    end
    if (rst) begin
        cmd_valid_reg <= 1'b0;
        wrote_last_reg <= 1'b0;
    end
end

`ifdef FORMAL
`include "nagi_memory_port_properties.vh"
`endif

endmodule

`resetall
