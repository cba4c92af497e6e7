// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * Block RAM with one write port and one read port. A read takes one clock. If an address is written
 * in the same clock, a read of that address returns an undefined value.
 */
module nagi_ram #
(
    parameter WIDTH = 8,
    parameter ADDR_WIDTH = 9
)
(
    input  wire                   clk,

    input  wire                   wr_en,
    input  wire [ADDR_WIDTH-1:0]  wr_addr,
    input  wire [WIDTH-1:0]       wr_data,

    input  wire                   rd_en,
    input  wire [ADDR_WIDTH-1:0]  rd_addr,
    output reg  [WIDTH-1:0]       rd_data
);

(* no_rw_check *)
reg [WIDTH-1:0] memory[(1 << ADDR_WIDTH)-1:0];

always @(posedge clk) begin
    if (wr_en) begin
        memory[wr_addr] <= wr_data;
    end
    if (rd_en) begin
        rd_data <= memory[rd_addr];
    end
end

endmodule

`resetall
