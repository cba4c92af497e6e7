// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * The drop-tail queue of one direction: sizes of the waiting packets, length of the queue, its
 * limit and the threshold of marking. The comparisons are up to date some clocks after a
 * change; nagi_link_model waits for that.
 */
module nagi_queue #
(
    // log2 of the maximum number of packets.
    parameter QUEUE_DEPTH_WIDTH = 10
)
(
    input  wire                        clk,
    input  wire                        rst,

    // Configuration, as in registers.yaml. It is fixed while rst is 0.
    input  wire [1:0]                  limit_kind,
    input  wire [40:0]                 limit,
    input  wire [1:0]                  mark_kind,
    input  wire [40:0]                 mark_threshold,

    // The packet that arrives. `let_in`: the packet enters the queue.
    input  wire                        let_in,
    input  wire [15:0]                 arriving_bytes,

    // The first packet leaves the queue. `let_in` and `starts` are never 1 in the same clock.
    input  wire                        starts,
    input  wire [15:0]                 starting_bytes,

    // 1: a packet is in transmission and counts as waiting.
    input  wire                        counts_served,
    input  wire [15:0]                 served_bytes,

    // Waiting packets, and the size of the first.
    output wire [QUEUE_DEPTH_WIDTH:0]  waiting,
    output wire [15:0]                 head_bytes,

    // First output: the packet that arrives is within the limit. Second output: the queue is longer
    // than the threshold.
    output wire                        has_room,
    output wire                        over_threshold
);

localparam [1:0]
    KIND_NONE = 2'd0,
    KIND_PACKETS = 2'd1,
    KIND_BYTES = 2'd2;

// Values derived from the configuration.
reg limits_packets_reg = 1'b0;
reg limits_bytes_reg = 1'b0;
reg marks_reg = 1'b0;

reg [QUEUE_DEPTH_WIDTH:0] waiting_reg = 0;
reg [QUEUE_DEPTH_WIDTH+16:0] waiting_bytes_reg = 0;
reg [QUEUE_DEPTH_WIDTH+16:0] waiting_bytes_change_reg = 0;  // change in the previous clock
reg [15:0] served_waiting_bytes_reg = 0;  // size of the packet in transmission, if it counts
reg [QUEUE_DEPTH_WIDTH-1:0] write_ptr_reg = 0;
reg [QUEUE_DEPTH_WIDTH-1:0] read_ptr_reg = 0;
reg [15:0] head_bytes_reg = 0;
// Length of the queue including the packet in transmission, if it counts. bytes_with_packet_reg
// also includes the arriving packet.
reg [QUEUE_DEPTH_WIDTH:0] counted_waiting_reg = 0;
reg [QUEUE_DEPTH_WIDTH+16:0] counted_waiting_bytes_reg = 0;
reg [QUEUE_DEPTH_WIDTH+17:0] bytes_with_packet_reg = 0;

// Comparisons, which are one clock late.
reg has_room_for_packet_reg = 1'b0;
reg has_room_for_bytes_reg = 1'b0;
reg [40:0] marked_waiting_reg = 0;  // length of the queue that marking compares
reg over_threshold_reg = 1'b0;

wire [15:0] first_bytes;
wire [QUEUE_DEPTH_WIDTH:0] counted_waiting = waiting_reg +
    {{QUEUE_DEPTH_WIDTH{1'b0}}, counts_served};
wire [QUEUE_DEPTH_WIDTH+16:0] counted_waiting_bytes = waiting_bytes_reg +
    {{QUEUE_DEPTH_WIDTH+1{1'b0}}, served_waiting_bytes_reg};
wire [40:0] wide_waiting = {{40-QUEUE_DEPTH_WIDTH{1'b0}}, waiting_reg};
wire [40:0] wide_waiting_bytes = {{24-QUEUE_DEPTH_WIDTH{1'b0}}, waiting_bytes_reg};
wire [QUEUE_DEPTH_WIDTH+16:0] waiting_bytes_change = {{QUEUE_DEPTH_WIDTH+1{1'b0}},
    let_in ? arriving_bytes : starts ? starting_bytes : 16'd0};

assign waiting = waiting_reg;
assign head_bytes = head_bytes_reg;
assign has_room = (!limits_packets_reg || has_room_for_packet_reg) &&
    (!limits_bytes_reg || has_room_for_bytes_reg);
assign over_threshold = over_threshold_reg;

nagi_ram #(.WIDTH(16), .ADDR_WIDTH(QUEUE_DEPTH_WIDTH)) sizes_inst (
    .clk(clk),
    .wr_en(let_in),
    .wr_addr(write_ptr_reg),
    .wr_data(arriving_bytes),
    .rd_en(1'b1),
    .rd_addr(read_ptr_reg),
    .rd_data(first_bytes)
);

always @(posedge clk) begin
    limits_packets_reg <= limit_kind == KIND_PACKETS;
    limits_bytes_reg <= limit_kind == KIND_BYTES;
    marks_reg <= mark_kind != KIND_NONE;

    served_waiting_bytes_reg <= counts_served ? served_bytes : 16'd0;
    head_bytes_reg <= first_bytes;
    counted_waiting_reg <= counted_waiting;
    counted_waiting_bytes_reg <= counted_waiting_bytes;
    bytes_with_packet_reg <=
        {1'b0, counted_waiting_bytes_reg} + {{QUEUE_DEPTH_WIDTH+2{1'b0}}, arriving_bytes};
    marked_waiting_reg <= mark_kind == KIND_BYTES ? wide_waiting_bytes : wide_waiting;
    over_threshold_reg <= marks_reg && marked_waiting_reg > mark_threshold;
    has_room_for_packet_reg <= {{40-QUEUE_DEPTH_WIDTH{1'b0}}, counted_waiting_reg} < limit;
    has_room_for_bytes_reg <= {{23-QUEUE_DEPTH_WIDTH{1'b0}}, bytes_with_packet_reg} <= limit;

    waiting_reg <= waiting_reg + {{QUEUE_DEPTH_WIDTH{1'b0}}, let_in} -
        {{QUEUE_DEPTH_WIDTH{1'b0}}, starts};
    waiting_bytes_change_reg <= starts ? {QUEUE_DEPTH_WIDTH+17{1'b0}} - waiting_bytes_change :
        waiting_bytes_change;
    waiting_bytes_reg <= waiting_bytes_reg + waiting_bytes_change_reg;
    if (let_in) begin
        write_ptr_reg <= write_ptr_reg + 1'b1;
    end
    if (starts) begin
        read_ptr_reg <= read_ptr_reg + 1'b1;
    end

    if (rst) begin
        waiting_reg <= 0;
        waiting_bytes_reg <= 0;
        waiting_bytes_change_reg <= 0;
        write_ptr_reg <= 0;
        read_ptr_reg <= 0;
    end
end

endmodule

`resetall
