// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

`include "nagi_registers.vh"

/*
 * Counters of one direction, in distributed memory. Small accumulators gather the events. A sweep
 * takes 19 clocks. In its first clock, the sweep copies all accumulators. It then adds the copies
 * to the counters, one counter per clock. If a latch was requested, the sweep also writes each sum
 * to a second memory. So all latched counters have their values at the sweep's first clock.
 */
module nagi_counters #
(
    parameter QUEUE_DEPTH_WIDTH = 10
)
(
    input  wire                        clk,
    input  wire                        rst,
    // Counters restart at 0 with the next sweep.
    input  wire                        clear,
    // `latch` requests that all counters are stored for reading. `latches` is 1 in the clock whose
    // values are stored. `latched` is 1 when all counters have been stored.
    input  wire                        latch,
    output wire                        latches,
    output wire                        latched,

    // Pulses, and the quantities that belong to them.
    input  wire                        offered,
    input  wire [15:0]                 offered_bytes,
    input  wire                        delivered,
    input  wire [15:0]                 delivered_bytes,
    input  wire                        queue_overflow,
    input  wire                        channel_loss,
    input  wire                        marked,
    input  wire                        transmitted,
    input  wire [16:0]                 transmitted_bytes,
    input  wire [50:0]                 transmitting_ns,
    // The number of waiting packets. waiting_valid is 1 whenever this number may have grown.
    input  wire [QUEUE_DEPTH_WIDTH:0]  waiting,
    input  wire                        waiting_valid,
    input  wire                        bad_frame,
    input  wire                        memory_overflow,
    input  wire                        lost_record,
    input  wire                        late_release,
    input  wire [31:0]                 late_ns,

    // read_value is the latched counter that read_counter selected one clock before.
    input  wire [3:0]                  read_counter,
    output reg  [63:0]                 read_value
);

localparam COUNTERS = 16;
localparam [4:0] LAST_STEP = 5'd18;
// A counted event happens at most once in three clocks. So accumulators of these widths can hold
// the pulses, bytes and times of one sweep (19 clocks).
localparam PULSES_WIDTH = 3;
localparam BYTES_WIDTH = 20;
localparam TIME_WIDTH = 54;

reg [63:0] counter_memory[COUNTERS-1:0];
reg [63:0] latched_memory[COUNTERS-1:0];

reg [4:0] step_reg = 0;
reg starts_reg = 1'b0;      // step_reg is 0
// Copies of starts_reg, which limit its fan-out.
reg starts_bytes_reg = 1'b0;
reg starts_time_reg = 1'b0;
reg is_last_step_reg = 1'b0;    // the next step is 0
reg is_before_last_reg = 1'b0;
reg [3:0] number_reg = 0;   // counter that is looked up, then added to
reg [3:0] written_reg = 0;  // counter that is written back
reg writes_reg = 1'b0;
reg clear_asked_reg = 1'b1;
reg clearing_reg = 1'b1;
reg latch_asked_reg = 1'b0;
reg latching_reg = 1'b0;
reg latched_reg = 1'b0;
reg [63:0] base_reg = 0;
reg [63:0] addend_reg = 0;
reg [63:0] sum_reg = 0;

// Events of the previous clock.
reg [COUNTERS-1:0] pulse_reg = 0;
reg [15:0] offered_more_reg = 0;
reg [15:0] delivered_more_reg = 0;
reg [16:0] transmitted_more_reg = 0;
reg [50:0] transmitting_more_reg = 0;

// Accumulators of pulses, by the number of the counter, then accumulators of bytes and times.
reg [PULSES_WIDTH-1:0] pulses_reg[COUNTERS-1:0];
reg [PULSES_WIDTH-1:0] pulses_aside_reg[COUNTERS-1:0];
reg [BYTES_WIDTH-1:0] offered_bytes_reg = 0;
reg [BYTES_WIDTH-1:0] offered_bytes_aside_reg = 0;
reg [BYTES_WIDTH-1:0] delivered_bytes_reg = 0;
reg [BYTES_WIDTH-1:0] delivered_bytes_aside_reg = 0;
reg [BYTES_WIDTH-1:0] transmitted_bytes_reg = 0;
reg [BYTES_WIDTH-1:0] transmitted_bytes_aside_reg = 0;
reg [TIME_WIDTH-1:0] transmitting_reg = 0;
reg [TIME_WIDTH-1:0] transmitting_aside_reg = 0;
reg [QUEUE_DEPTH_WIDTH:0] max_waiting_reg = 0;
reg [31:0] max_late_reg = 0;
reg was_delivered_reg = 1'b0;
reg is_later_reg = 1'b0;

reg [COUNTERS-1:0] pulse;
reg [63:0] addend;
reg is_maximum;
integer i;

wire starts = starts_reg;
wire [3:0] number = number_reg;
wire [3:0] written = written_reg;
wire writes = writes_reg;

assign latches = starts && latch_asked_reg;
assign latched = latched_reg;

always @* begin
    pulse = 0;
    pulse[`NAGI_COUNTER_OFFERED] = offered;
    pulse[`NAGI_COUNTER_DELIVERED] = delivered;
    pulse[`NAGI_COUNTER_QUEUE_OVERFLOWS] = queue_overflow;
    pulse[`NAGI_COUNTER_CHANNEL_LOSSES] = channel_loss;
    pulse[`NAGI_COUNTER_MARKED] = marked;
    pulse[`NAGI_COUNTER_TRANSMITTED] = transmitted;
    pulse[`NAGI_COUNTER_BAD_FRAMES] = bad_frame;
    pulse[`NAGI_COUNTER_MEMORY_OVERFLOWS] = memory_overflow;
    pulse[`NAGI_COUNTER_LOST_RECORDS] = lost_record;
    pulse[`NAGI_COUNTER_LATE_RELEASES] = late_release;

    addend = {{64-PULSES_WIDTH{1'b0}}, pulses_aside_reg[0]};
    is_maximum = 1'b0;
    case (number)
        `NAGI_COUNTER_OFFERED_BYTES: addend = {{64-BYTES_WIDTH{1'b0}}, offered_bytes_aside_reg};
        `NAGI_COUNTER_DELIVERED_BYTES:
            addend = {{64-BYTES_WIDTH{1'b0}}, delivered_bytes_aside_reg};
        `NAGI_COUNTER_TRANSMITTED_BYTES:
            addend = {{64-BYTES_WIDTH{1'b0}}, transmitted_bytes_aside_reg};
        `NAGI_COUNTER_TRANSMITTING_NS: addend = {{64-TIME_WIDTH{1'b0}}, transmitting_aside_reg};
        `NAGI_COUNTER_MAX_WAITING: begin
            addend = {{63-QUEUE_DEPTH_WIDTH{1'b0}}, max_waiting_reg};
            is_maximum = 1'b1;
        end
        `NAGI_COUNTER_MAX_LATE_NS: begin
            addend = {32'd0, max_late_reg};
            is_maximum = 1'b1;
        end
        default: ;
    endcase
end

always @(posedge clk) begin
    step_reg <= step_reg == LAST_STEP ? 5'd0 : step_reg + 1'b1;
    // Step n looks up counter n - 1 and writes counter n - 3.
    starts_reg <= step_reg == LAST_STEP;
    is_before_last_reg <= step_reg == LAST_STEP - 5'd2;
    is_last_step_reg <= is_before_last_reg;
    starts_bytes_reg <= is_last_step_reg;
    starts_time_reg <= is_last_step_reg && !starts_time_reg;
    number_reg <= step_reg[3:0];
    written_reg <= step_reg[3:0] - 4'd2;
    writes_reg <= step_reg >= 5'd2 && step_reg != LAST_STEP;
    latched_reg <= 1'b0;
    if (latch) begin
        latch_asked_reg <= 1'b1;
    end
    if (clear) begin
        clear_asked_reg <= 1'b1;
    end

    for (i = 0; i < COUNTERS; i = i + 1) begin
        pulses_reg[i] <= (starts ? {PULSES_WIDTH{1'b0}} : pulses_reg[i]) +
            {{PULSES_WIDTH-1{1'b0}}, pulse_reg[i]};
    end
    pulse_reg <= pulse;
    offered_more_reg <= offered ? offered_bytes : 16'd0;
    delivered_more_reg <= delivered ? delivered_bytes : 16'd0;
    transmitted_more_reg <= transmitted ? transmitted_bytes : 17'd0;
    transmitting_more_reg <= transmitted ? transmitting_ns : 51'd0;
    offered_bytes_reg <= (starts_bytes_reg ? {BYTES_WIDTH{1'b0}} : offered_bytes_reg) +
        {{BYTES_WIDTH-16{1'b0}}, offered_more_reg};
    delivered_bytes_reg <= (starts_bytes_reg ? {BYTES_WIDTH{1'b0}} : delivered_bytes_reg) +
        {{BYTES_WIDTH-16{1'b0}}, delivered_more_reg};
    transmitted_bytes_reg <= (starts_bytes_reg ? {BYTES_WIDTH{1'b0}} : transmitted_bytes_reg) +
        {{BYTES_WIDTH-17{1'b0}}, transmitted_more_reg};
    transmitting_reg <= (starts_time_reg ? {TIME_WIDTH{1'b0}} : transmitting_reg) +
        {{TIME_WIDTH-51{1'b0}}, transmitting_more_reg};
    if (waiting_valid && waiting > max_waiting_reg) begin
        max_waiting_reg <= waiting;
    end
    // late_ns stays stable for several clocks, so its comparison may take one clock.
    was_delivered_reg <= delivered;
    is_later_reg <= late_ns > max_late_reg;
    if (was_delivered_reg && is_later_reg) begin
        max_late_reg <= late_ns;
    end

    // Element 0 belongs to the counter that is looked up.
    for (i = 0; i < COUNTERS - 1; i = i + 1) begin
        pulses_aside_reg[i] <= pulses_aside_reg[i+1];
    end
    if (starts) begin
        clearing_reg <= clear_asked_reg;
        clear_asked_reg <= clear;
        latching_reg <= latch_asked_reg;
        latch_asked_reg <= latch;
        for (i = 0; i < COUNTERS; i = i + 1) begin
            pulses_aside_reg[i] <= pulses_reg[i];
        end
        if (clear_asked_reg) begin
            max_waiting_reg <= 0;
            max_late_reg <= 0;
        end
    end
    if (starts_bytes_reg) begin
        offered_bytes_aside_reg <= offered_bytes_reg;
        delivered_bytes_aside_reg <= delivered_bytes_reg;
        transmitted_bytes_aside_reg <= transmitted_bytes_reg;
    end
    if (starts_time_reg) begin
        transmitting_aside_reg <= transmitting_reg;
    end
    base_reg <= is_maximum || clearing_reg ? 64'd0 : counter_memory[number];
    addend_reg <= clearing_reg ? 64'd0 : addend;
    sum_reg <= base_reg + addend_reg;
    if (writes) begin
        counter_memory[written] <= sum_reg;
        if (latching_reg) begin
            latched_memory[written] <= sum_reg;
        end
    end
    if (step_reg == LAST_STEP) begin
        latched_reg <= latching_reg;
        latching_reg <= 1'b0;
    end
    read_value <= latched_memory[read_counter];

    if (rst) begin
        step_reg <= 0;
        starts_reg <= 1'b1;
        starts_bytes_reg <= 1'b1;
        starts_time_reg <= 1'b1;
        is_last_step_reg <= 1'b0;
        is_before_last_reg <= 1'b0;
        number_reg <= 4'd15;
        writes_reg <= 1'b0;
        clear_asked_reg <= 1'b1;
        latch_asked_reg <= 1'b0;
        latching_reg <= 1'b0;
        latched_reg <= 1'b0;
    end
end

endmodule

`resetall
