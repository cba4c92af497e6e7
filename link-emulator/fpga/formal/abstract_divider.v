// SPDX-License-Identifier: Apache-2.0

/*
 * Abstraction of nagi_divider for proofs. It answers with any quotient, after any number of clocks.
 * Proofs that compare instants assume a small quotient, so that no instant exceeds 64 bits.
 */
module nagi_divider #
(
    parameter DIVIDEND_WIDTH = 51,
    parameter DIVISOR_WIDTH = 40,
    parameter BITS = 1
)
(
    input  wire                       clk,
    input  wire                       rst,
    input  wire                       start,
    input  wire [DIVIDEND_WIDTH-1:0]  dividend,
    input  wire [DIVISOR_WIDTH-1:0]   divisor,
    output wire                       done,
    output wire [DIVIDEND_WIDTH-1:0]  quotient,
    output wire [DIVISOR_WIDTH-1:0]   remainder
);

(* anyseq *) wire answers;
(* anyseq *) wire [DIVIDEND_WIDTH-1:0] any_quotient;
(* anyseq *) wire [DIVISOR_WIDTH-1:0] any_remainder;

reg busy = 1'b0;
reg [DIVIDEND_WIDTH-1:0] quotient_reg = 0;

assign done = busy && answers;
assign quotient = busy ? any_quotient : quotient_reg;
assign remainder = any_remainder;

always @(posedge clk) begin
    busy <= !rst && (start || (busy && !answers));
    if (busy) quotient_reg <= any_quotient;
end

endmodule
