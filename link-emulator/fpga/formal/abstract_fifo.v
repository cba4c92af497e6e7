// SPDX-License-Identifier: Apache-2.0

/*
 * Abstraction of nagi_fifo for proofs. It accepts and delivers any data at any clock. nagi_fifo has
 * properties of its own; a proof that uses this module assumes the contents that it needs.
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
(* anyseq *) wire any_ready;
(* anyseq *) wire any_valid;

assign s_ready = any_ready;
assign m_valid = any_valid;
assign m_data = any_data;

endmodule
