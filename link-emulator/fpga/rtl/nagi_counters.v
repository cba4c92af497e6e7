// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

`include "nagi_registers.vh"

/*
 * Counters of a direction, all latched at once, then read one by one.
 */
module nagi_counters #
(
    parameter QUEUE_DEPTH_WIDTH = 10
)
(
    input  wire                        clk,
    input  wire                        rst,
    input  wire                        latch,

    // Pulses, and what goes with them.
    input  wire                        offered,
    input  wire [15:0]                 offered_bytes,
    input  wire                        delivered,
    input  wire [15:0]                 delivered_bytes,
    input  wire                        queue_overflow,
    input  wire                        channel_loss,
    input  wire                        marked,
    input  wire                        transmitted,
    input  wire [16:0]                 transmitted_bytes,
    input  wire [63:0]                 transmitting_ns,
    // What waits, whenever that may have become more.
    input  wire [QUEUE_DEPTH_WIDTH:0]  waiting,
    input  wire                        waiting_valid,
    input  wire                        bad_frame,
    input  wire                        memory_overflow,
    input  wire                        lost_record,
    input  wire                        late_release,
    input  wire [31:0]                 late_ns,

    // A latched counter, a clock later.
    input  wire [3:0]                  read_counter,
    output reg  [63:0]                 read_value
);

localparam COUNTERS = 16;

reg [63:0] counter_reg[COUNTERS-1:0];
reg [63:0] latched_reg[COUNTERS-1:0];
integer i;

always @(posedge clk) begin
    counter_reg[`NAGI_COUNTER_OFFERED] <= counter_reg[`NAGI_COUNTER_OFFERED] + {63'd0, offered};
    counter_reg[`NAGI_COUNTER_OFFERED_BYTES] <= counter_reg[`NAGI_COUNTER_OFFERED_BYTES] +
        (offered ? {48'd0, offered_bytes} : 64'd0);
    counter_reg[`NAGI_COUNTER_DELIVERED] <= counter_reg[`NAGI_COUNTER_DELIVERED] +
        {63'd0, delivered};
    counter_reg[`NAGI_COUNTER_DELIVERED_BYTES] <= counter_reg[`NAGI_COUNTER_DELIVERED_BYTES] +
        (delivered ? {48'd0, delivered_bytes} : 64'd0);
    counter_reg[`NAGI_COUNTER_QUEUE_OVERFLOWS] <= counter_reg[`NAGI_COUNTER_QUEUE_OVERFLOWS] +
        {63'd0, queue_overflow};
    counter_reg[`NAGI_COUNTER_CHANNEL_LOSSES] <= counter_reg[`NAGI_COUNTER_CHANNEL_LOSSES] +
        {63'd0, channel_loss};
    counter_reg[`NAGI_COUNTER_MARKED] <= counter_reg[`NAGI_COUNTER_MARKED] + {63'd0, marked};
    counter_reg[`NAGI_COUNTER_TRANSMITTED] <= counter_reg[`NAGI_COUNTER_TRANSMITTED] +
        {63'd0, transmitted};
    counter_reg[`NAGI_COUNTER_TRANSMITTED_BYTES] <= counter_reg[`NAGI_COUNTER_TRANSMITTED_BYTES] +
        (transmitted ? {47'd0, transmitted_bytes} : 64'd0);
    counter_reg[`NAGI_COUNTER_TRANSMITTING_NS] <= counter_reg[`NAGI_COUNTER_TRANSMITTING_NS] +
        (transmitted ? transmitting_ns : 64'd0);
    if (waiting_valid && waiting > counter_reg[`NAGI_COUNTER_MAX_WAITING][QUEUE_DEPTH_WIDTH:0]) begin
        counter_reg[`NAGI_COUNTER_MAX_WAITING] <= {{63-QUEUE_DEPTH_WIDTH{1'b0}}, waiting};
    end
    counter_reg[`NAGI_COUNTER_BAD_FRAMES] <= counter_reg[`NAGI_COUNTER_BAD_FRAMES] +
        {63'd0, bad_frame};
    counter_reg[`NAGI_COUNTER_MEMORY_OVERFLOWS] <= counter_reg[`NAGI_COUNTER_MEMORY_OVERFLOWS] +
        {63'd0, memory_overflow};
    counter_reg[`NAGI_COUNTER_LOST_RECORDS] <= counter_reg[`NAGI_COUNTER_LOST_RECORDS] +
        {63'd0, lost_record};
    counter_reg[`NAGI_COUNTER_LATE_RELEASES] <= counter_reg[`NAGI_COUNTER_LATE_RELEASES] +
        {63'd0, late_release};
    if (delivered && late_ns > counter_reg[`NAGI_COUNTER_MAX_LATE_NS][31:0]) begin
        counter_reg[`NAGI_COUNTER_MAX_LATE_NS] <= {32'd0, late_ns};
    end

    read_value <= latched_reg[read_counter];
    for (i = 0; i < COUNTERS; i = i + 1) begin
        if (latch) begin
            latched_reg[i] <= counter_reg[i];
        end
        if (rst) begin
            counter_reg[i] <= 0;
        end
    end
end

endmodule

`resetall
