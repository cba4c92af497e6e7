// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * FIFO in distributed memory. The first entry is at the output without a request.
 */
module nagi_fifo #
(
    parameter WIDTH = 8,
    // log2 of the number of entries.
    parameter DEPTH_WIDTH = 4
)
(
    input  wire              clk,
    input  wire              rst,

    input  wire [WIDTH-1:0]  s_data,
    input  wire              s_valid,
    output wire              s_ready,

    output wire [WIDTH-1:0]  m_data,
    output wire              m_valid,
    input  wire              m_ready
);

localparam [DEPTH_WIDTH:0] ENTRIES = 1 << DEPTH_WIDTH;

reg [WIDTH-1:0] memory[(1 << DEPTH_WIDTH)-1:0];
reg [DEPTH_WIDTH-1:0] write_ptr_reg = 0;
reg [DEPTH_WIDTH-1:0] read_ptr_reg = 0;
reg [DEPTH_WIDTH:0] held_reg = 0;
reg has_any_reg = 1'b0;   // held_reg is not 0
reg has_room_reg = 1'b1;  // held_reg is not ENTRIES

wire puts = s_valid && has_room_reg;
wire takes = m_ready && has_any_reg;

assign s_ready = has_room_reg;
assign m_valid = has_any_reg;
assign m_data = memory[read_ptr_reg];

always @(posedge clk) begin
    if (puts) begin
        memory[write_ptr_reg] <= s_data;
        write_ptr_reg <= write_ptr_reg + 1'b1;
    end
    if (takes) begin
        read_ptr_reg <= read_ptr_reg + 1'b1;
    end
    if (puts && !takes) begin
        held_reg <= held_reg + 1'b1;
        has_any_reg <= 1'b1;
        has_room_reg <= held_reg != ENTRIES - 1'b1;
    end else if (takes && !puts) begin
        held_reg <= held_reg - 1'b1;
        has_any_reg <= held_reg != 1;
        has_room_reg <= 1'b1;
    end
    if (rst) begin
        write_ptr_reg <= 0;
        read_ptr_reg <= 0;
        held_reg <= 0;
        has_any_reg <= 1'b0;
        has_room_reg <= 1'b1;
    end
end

`ifdef FORMAL
`include "nagi_fifo_properties.vh"
`endif

endmodule

`resetall
