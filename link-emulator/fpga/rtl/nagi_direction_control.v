// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * Starts and stops one direction: its resets, the acceptance of frames, and its idle state. When
 * `run` becomes 0, the direction first completes its work.
 */
module nagi_direction_control
(
    input  wire  clk,
    input  wire  rst,
    input  wire  run,

    // The direction's time is before its epoch.
    input  wire  is_before_epoch,
    // 1: a reset would interrupt no work.
    input  wire  is_quiet,
    // All modules of the direction are idle.
    input  wire  are_modules_idle,

    // This reset is held while the direction does not run. The direction then restarts from its
    // initial state.
    output wire  reset,
    // These resets are one, two and three clocks late. That is early enough for modules that data
    // reaches only later.
    output wire  ingress_reset,
    output wire  model_reset,
    output wire  egress_reset,

    // Frames are accepted.
    output wire  accept,
    output wire  idle
);

reg reset_reg = 1'b1;
reg ingress_reset_reg = 1'b1;
reg model_reset_reg = 1'b1;
reg egress_reset_reg = 1'b1;
reg quiet_reg = 1'b0;
reg accept_reg = 1'b0;
reg idle_reg = 1'b0;

assign reset = reset_reg;
assign ingress_reset = ingress_reset_reg;
assign model_reset = model_reset_reg;
assign egress_reset = egress_reset_reg;
assign accept = accept_reg;
assign idle = idle_reg;

always @(posedge clk) begin
    // No frame is accepted before the epoch.
    accept_reg <= run && !reset_reg && !is_before_epoch;
    // nagi_link_core waits some clocks after idle_reg until all registers have settled.
    idle_reg <= reset_reg || are_modules_idle;
    if (run && reset_reg) begin
        reset_reg <= 1'b0;
    end else if (!run && quiet_reg) begin
        reset_reg <= 1'b1;
    end
    ingress_reset_reg <= reset_reg;
    model_reset_reg <= ingress_reset_reg;
    egress_reset_reg <= model_reset_reg;
    // quiet_reg is one clock late. This is safe because no new work begins while run is 0.
    quiet_reg <= is_quiet && !run;

    if (rst) begin
        reset_reg <= 1'b1;
        quiet_reg <= 1'b0;
    end
end

endmodule

`resetall
