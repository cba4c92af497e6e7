// SPDX-License-Identifier: Apache-2.0

/*
 * In the place of nagi_fifo, which has properties of its own: how much is in it, with any data.
 */
module nagi_fifo #
(
    parameter WIDTH = 8,
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

(* anyseq *) wire [WIDTH-1:0] any_data;

reg [DEPTH_WIDTH:0] count = 0;

assign s_ready = !count[DEPTH_WIDTH];
assign m_valid = count != 0;
assign m_data = any_data;

always @(posedge clk) begin
    count <= count + (s_valid && s_ready) - (m_valid && m_ready);
    if (rst) count <= 0;
end

endmodule
