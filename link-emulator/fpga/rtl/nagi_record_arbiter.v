// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * Two streams to one. Both at once take turns.
 */
module nagi_record_arbiter #
(
    parameter WIDTH = 256
)
(
    input  wire              clk,
    input  wire              rst,

    input  wire [WIDTH-1:0]  s_0_data,
    input  wire              s_0_valid,
    output wire              s_0_ready,

    input  wire [WIDTH-1:0]  s_1_data,
    input  wire              s_1_valid,
    output wire              s_1_ready,

    output wire [WIDTH-1:0]  m_data,
    output wire              m_valid,
    input  wire              m_ready
);

reg [WIDTH-1:0] data_reg = 0;
reg valid_reg = 1'b0;
reg last_reg = 1'b0;  // which stream was taken last

wire can_take = !valid_reg || m_ready;

assign s_0_ready = can_take && (!s_1_valid || last_reg);
assign s_1_ready = can_take && (!s_0_valid || !last_reg);
assign m_data = data_reg;
assign m_valid = valid_reg;

always @(posedge clk) begin
    if (m_ready) begin
        valid_reg <= 1'b0;
    end
    if (s_0_valid && s_0_ready) begin
        data_reg <= s_0_data;
        valid_reg <= 1'b1;
        last_reg <= 1'b0;
    end else if (s_1_valid && s_1_ready) begin
        data_reg <= s_1_data;
        valid_reg <= 1'b1;
        last_reg <= 1'b1;
    end
    if (rst) begin
        valid_reg <= 1'b0;
        last_reg <= 1'b0;
    end
end

endmodule

`resetall
