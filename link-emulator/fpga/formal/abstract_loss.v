// SPDX-License-Identifier: Apache-2.0

/*
 * Abstraction of nagi_loss for proofs. It gives any answer, after any number of clocks.
 */
module nagi_loss #
(
    parameter POISSON = 1
)
(
    input  wire         clk,
    input  wire         rst,
    input  wire [1:0]   kind,
    input  wire [63:0]  seed,
    input  wire [31:0]  link,
    input  wire         direction,
    input  wire [63:0]  loss_in_good,
    input  wire [63:0]  loss_in_bad,
    input  wire [63:0]  good_to_bad,
    input  wire [63:0]  bad_to_good,
    input  wire [3:0]   certain,
    input  wire [63:0]  poisson_mean_ps,
    input  wire [63:0]  bound,
    input  wire         bound_valid,
    input  wire         ask,
    input  wire [63:0]  from,
    input  wire [63:0]  to,
    output wire         answered,
    output wire         lost,
    output wire         idle
);

(* anyseq *) wire any_answered;
(* anyseq *) wire any_lost;
(* anyseq *) wire any_idle;

assign answered = any_answered;
assign lost = any_lost;
assign idle = any_idle;

endmodule
