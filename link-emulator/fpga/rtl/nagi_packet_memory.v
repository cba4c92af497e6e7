// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * Packet memory as block RAM, behind the core's memory port.
 */
module nagi_packet_memory #
(
    parameter MEM_WIDTH = 64,
    // log2 of the number of words.
    parameter ADDR_WIDTH = 13
)
(
    input  wire                   clk,
    input  wire                   rst,

    input  wire                   cmd_valid,
    output wire                   cmd_ready,
    input  wire                   cmd_we,
    input  wire [ADDR_WIDTH-1:0]  cmd_addr,
    input  wire                   wdata_valid,
    output wire                   wdata_ready,
    input  wire [MEM_WIDTH-1:0]   wdata,
    output wire                   rdata_valid,
    input  wire                   rdata_ready,
    output wire [MEM_WIDTH-1:0]   rdata
);

reg rdata_valid_reg = 1'b0;

wire can_read = !rdata_valid_reg || rdata_ready;
wire writes = cmd_valid && cmd_we && wdata_valid;
wire reads = cmd_valid && !cmd_we && can_read;

assign cmd_ready = writes || reads;
assign wdata_ready = cmd_valid && cmd_we;
assign rdata_valid = rdata_valid_reg;

nagi_ram #(.WIDTH(MEM_WIDTH), .ADDR_WIDTH(ADDR_WIDTH)) ram_inst (
    .clk(clk),
    .wr_en(writes),
    .wr_addr(cmd_addr),
    .wr_data(wdata),
    .rd_en(reads),
    .rd_addr(cmd_addr),
    .rd_data(rdata)
);

always @(posedge clk) begin
    if (reads) begin
        rdata_valid_reg <= 1'b1;
    end else if (rdata_ready) begin
        rdata_valid_reg <= 1'b0;
    end
    if (rst) begin
        rdata_valid_reg <= 1'b0;
    end
end

endmodule

`resetall
