// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * Counts time in nanoseconds, from a clock of any period in ps. The time can be set.
 */
module nagi_time_counter #
(
    parameter CLOCK_PERIOD_PS = 8000
)
(
    input  wire         clk,
    input  wire         rst,
    input  wire         set,
    input  wire [63:0]  set_ns,
    output wire [63:0]  time_ns
);

localparam NS = CLOCK_PERIOD_PS / 1000;
localparam [63:0] STEP_NS = {32'd0, NS[31:0]};
localparam PS = CLOCK_PERIOD_PS % 1000;
localparam [9:0] STEP_PS = PS[9:0];
localparam [10:0] PS_PER_NS = 11'd1000;

reg [63:0] time_reg = 0;
reg [9:0] ps_reg = 0;  // fraction of a nanosecond, in ps

wire [10:0] ps = {1'b0, ps_reg} + {1'b0, STEP_PS};
wire [10:0] ps_over = ps - PS_PER_NS;
wire unused = &{1'b0, ps_over};
wire carries = ps >= PS_PER_NS;

assign time_ns = time_reg;

always @(posedge clk) begin
    ps_reg <= carries ? ps_over[9:0] : ps[9:0];
    time_reg <= time_reg + STEP_NS + {63'd0, carries};
    if (set) begin
        time_reg <= set_ns;
        ps_reg <= 0;
    end
    if (rst) begin
        time_reg <= 0;
        ps_reg <= 0;
    end
end

endmodule

`resetall
