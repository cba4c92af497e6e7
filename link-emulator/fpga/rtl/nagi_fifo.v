// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * FIFO in distributed memory. What is first is at the output, without being asked for.
 */
module nagi_fifo #
(
    parameter WIDTH = 8,
    // log2 of the entries.
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

reg [WIDTH-1:0] memory[(1 << DEPTH_WIDTH)-1:0];
reg [DEPTH_WIDTH:0] write_ptr_reg = 0;
reg [DEPTH_WIDTH:0] read_ptr_reg = 0;

wire is_empty = write_ptr_reg == read_ptr_reg;
wire is_full = write_ptr_reg == (read_ptr_reg ^ {1'b1, {DEPTH_WIDTH{1'b0}}});

assign s_ready = !is_full;
assign m_valid = !is_empty;
assign m_data = memory[read_ptr_reg[DEPTH_WIDTH-1:0]];

always @(posedge clk) begin
    if (s_valid && s_ready) begin
        memory[write_ptr_reg[DEPTH_WIDTH-1:0]] <= s_data;
        write_ptr_reg <= write_ptr_reg + 1'b1;
    end
    if (m_valid && m_ready) begin
        read_ptr_reg <= read_ptr_reg + 1'b1;
    end
    if (rst) begin
        write_ptr_reg <= 0;
        read_ptr_reg <= 0;
    end
end

`ifdef FORMAL
`include "nagi_fifo_properties.vh"
`endif

endmodule

`resetall
