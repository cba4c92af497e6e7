// SPDX-License-Identifier: Apache-2.0
//
// Technology map for Yosys. It implements sums, differences and comparisons as carry chains of an
// ECP5 and replaces the map of Yosys.
//
// nextpnr spends one CCU2C to feed a constant carry into a chain and one to take a carry out of a
// chain. In this map, the lowest bits of the chain generate the first carry, and logic derives the
// last carry from the highest sum bit.
//
// One half of a CCU2C computes S = L4 ^ CIN and COUT = L4 ? CIN : L2. L4 is its lookup table of
// four inputs. L2 consists of the first four entries of that table and depends on A and B.

`ifndef ENDS

(* techmap_celltype = "$alu" *)
module _70_nagi_alu (A, B, CI, BI, X, Y, CO);

parameter A_SIGNED = 0;
parameter B_SIGNED = 0;
parameter A_WIDTH = 1;
parameter B_WIDTH = 1;
parameter Y_WIDTH = 1;

parameter _TECHMAP_CONSTMSK_CI_ = 0;
parameter _TECHMAP_CONSTVAL_CI_ = 0;
parameter _TECHMAP_CONSTMSK_BI_ = 0;
parameter _TECHMAP_CONSTVAL_BI_ = 0;

(* force_downto *) input [A_WIDTH-1:0] A;
(* force_downto *) input [B_WIDTH-1:0] B;
input CI, BI;
(* force_downto *) output [Y_WIDTH-1:0] X, Y, CO;

// Yosys maps chains of at most 4 bits and chains that switch between sum and difference.
wire _TECHMAP_FAIL_ = Y_WIDTH <= 4 || !_TECHMAP_CONSTMSK_CI_ || !_TECHMAP_CONSTMSK_BI_;

localparam CARRY = _TECHMAP_CONSTVAL_CI_ ? 1 : 0;
localparam INVERT = _TECHMAP_CONSTVAL_BI_ ? 1 : 0;
// With an odd width, one half is not needed for a bit and generates the constant carry. With an
// even width, the first half generates the carry out of bit 0, and logic computes the sum of bit 0.
localparam FIRST = Y_WIDTH % 2;
localparam SLOTS = Y_WIDTH + FIRST;

localparam [3:0] GENERATE = CARRY ? (INVERT ? 4'b1011 : 4'b1110) : (INVERT ? 4'b0010 : 4'b1000);
localparam [15:0] START = FIRST ? (CARRY ? 16'h000f : 16'h0000) : {12'd0, GENERATE};
// L4 is A ^ B, inverted for a difference. L2 is A.
localparam [15:0] SUM = INVERT ? 16'h999a : 16'h666a;

(* force_downto *) wire [Y_WIDTH-1:0] A_wide, B_wide;
\$pos #(.A_SIGNED(A_SIGNED), .A_WIDTH(A_WIDTH), .Y_WIDTH(Y_WIDTH)) A_conv (.A(A), .Y(A_wide));
\$pos #(.A_SIGNED(B_SIGNED), .A_WIDTH(B_WIDTH), .Y_WIDTH(Y_WIDTH)) B_conv (.A(B), .Y(B_wide));

(* force_downto *) wire [Y_WIDTH-1:0] BB = INVERT ? ~B_wide : B_wide;
(* force_downto *) wire [SLOTS-1:0] AS = FIRST ? {A_wide, 1'b1} : A_wide;
(* force_downto *) wire [SLOTS-1:0] BS = FIRST ? {B_wide, 1'b1} : B_wide;
(* force_downto *) wire [SLOTS-1:0] S;
(* force_downto *) wire [SLOTS/2-1:0] C;

genvar i;
generate
    for (i = 0; i < SLOTS; i = i + 2) begin : slice
        if (i == 0) begin
            CCU2C #(.INIT0(START), .INIT1(SUM), .INJECT1_0("NO"), .INJECT1_1("NO")) chain (
                .CIN(1'b0),
                .A0(AS[0]), .B0(BS[0]), .C0(1'b1), .D0(1'b1),
                .A1(AS[1]), .B1(BS[1]), .C1(1'b1), .D1(1'b1),
                .S1(S[1]), .COUT(C[0])
            );
            assign S[0] = AS[0] ^ BS[0] ^ INVERT ^ CARRY;
        end else begin
            CCU2C #(
                .INIT0(SUM), .INIT1(SUM), .INJECT1_0("NO"),
                .INJECT1_1(i + 2 < SLOTS ? "NO" : "LAST")
            ) chain (
                .CIN(C[i/2-1]),
                .A0(AS[i]), .B0(BS[i]), .C0(1'b1), .D0(1'b1),
                .A1(AS[i+1]), .B1(BS[i+1]), .C1(1'b1), .D1(1'b1),
                .S0(S[i]), .S1(S[i+1]), .COUT(C[i/2])
            );
        end
    end
endgenerate

assign Y = S[SLOTS-1:FIRST];
assign X = A_wide ^ BB;
assign CO = (X & ~Y) | (~X & A_wide);

endmodule

`else

// This part (-D ENDS) runs after all other mapping. It disconnects constant carries into chains and
// unused carries out of chains, because nextpnr would spend a CCU2C on each.
(* techmap_celltype = "CCU2C" *)
module _70_nagi_ends (CIN, A0, B0, C0, D0, A1, B1, C1, D1, S0, S1, COUT);

parameter [15:0] INIT0 = 0;
parameter [15:0] INIT1 = 0;
parameter INJECT1_0 = "NO";
parameter INJECT1_1 = "NO";
parameter _TECHMAP_CONSTMSK_CIN_ = 0;
parameter _TECHMAP_CONSTVAL_CIN_ = 1'bx;

input CIN, A0, B0, C0, D0, A1, B1, C1, D1;
output S0, S1, COUT;

localparam IS_FIRST = _TECHMAP_CONSTMSK_CIN_ && _TECHMAP_CONSTVAL_CIN_ !== 1'bx && INIT0[15:4] == 0;
localparam IS_LAST = INJECT1_1 == "LAST";
wire _TECHMAP_FAIL_ = !IS_FIRST && !IS_LAST;

generate
    if (IS_FIRST) begin
        CCU2C #(
            .INIT0(INIT0), .INIT1(INIT1), .INJECT1_0("NO"), .INJECT1_1("NO")
        ) _TECHMAP_REPLACE_ (
            .CIN(1'bx),
            .A0(A0), .B0(B0), .C0(C0), .D0(D0), .A1(A1), .B1(B1), .C1(C1), .D1(D1),
            .S0(S0), .S1(S1), .COUT(COUT)
        );
    end else begin
        CCU2C #(
            .INIT0(INIT0), .INIT1(INIT1), .INJECT1_0("NO"), .INJECT1_1("NO")
        ) _TECHMAP_REPLACE_ (
            .CIN(CIN),
            .A0(A0), .B0(B0), .C0(C0), .D0(D0), .A1(A1), .B1(B1), .C1(C1), .D1(D1),
            .S0(S0), .S1(S1), .COUT(1'bx)
        );
    end
endgenerate

endmodule

`endif
