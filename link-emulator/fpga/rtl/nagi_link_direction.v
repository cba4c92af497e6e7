// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * One direction of a link: input of frames, the model that decides on them, packet memory, output
 * of frames, and a record of each packet.
 */
module nagi_link_direction #
(
    parameter DATA_WIDTH = 64,
    parameter MEM_WIDTH = 64,
    parameter ADDR_WIDTH = 13,
    parameter QUEUE_DEPTH_WIDTH = 10,
    parameter TIMESTAMPED = 0,
    parameter MAX_FRAME = 1536,
    parameter DIVIDER_BITS = 1,
    parameter POISSON = 1,
    parameter TICKS = 1,
    parameter TICK_NS = 8,
    parameter CONFIG_WORDS = 20,
    // 0: forward, 1: backward.
    parameter [0:0] DIRECTION = 1'b0
)
(
    input  wire                             clk,
    input  wire                             rst,
    // `run` enables the direction. `is_active` is 1 until the direction has completed its work
    // after `run` became 0.
    input  wire                             run,
    output wire                             is_active,
    input  wire [63:0]                      soon_ns,
    input  wire [63:0]                      now_ns,

    // Registers of the direction, in the order of their addresses; see registers.yaml.
    input  wire [CONFIG_WORDS*32-1:0]       configuration,
    input  wire [63:0]                      seed,
    input  wire [31:0]                      link,
    input  wire                             latch_counters,
    output wire                             counters_latch,
    output wire                             counters_latched,
    input  wire                             clear_counters,
    input  wire [3:0]                       read_counter,
    output wire [63:0]                      counter_value,

    input  wire [DATA_WIDTH-1:0]            s_axis_tdata,
    input  wire [DATA_WIDTH/8-1:0]          s_axis_tkeep,
    input  wire                             s_axis_tvalid,
    output wire                             s_axis_tready,
    input  wire                             s_axis_tlast,
    input  wire [(TIMESTAMPED ? 64 : TICKS-1):0]  s_axis_tuser,

    output wire [DATA_WIDTH-1:0]            m_axis_tdata,
    output wire [DATA_WIDTH/8-1:0]          m_axis_tkeep,
    output wire                             m_axis_tvalid,
    input  wire                             m_axis_tready,
    output wire                             m_axis_tlast,
    output wire                             m_axis_second,

    output wire                             mem_cmd_valid,
    input  wire                             mem_cmd_ready,
    output wire                             mem_cmd_we,
    output wire [ADDR_WIDTH-1:0]            mem_cmd_addr,
    output wire                             mem_wdata_valid,
    input  wire                             mem_wdata_ready,
    output wire [MEM_WIDTH-1:0]             mem_wdata,
    input  wire                             mem_rdata_valid,
    output wire                             mem_rdata_ready,
    input  wire [MEM_WIDTH-1:0]             mem_rdata,

    output wire [255:0]                     record,
    output wire                             record_valid,
    input  wire                             record_ready,
    // The record is taken, but the FIFO of records is full.
    input  wire                             record_lost,

    output wire                             idle,
    output wire [63:0]                      next_due_ns
);

localparam WORD_BYTES = MEM_WIDTH / 8;
// The buffers have room for two of the longest frames.
localparam BUFFER_WIDTH = $clog2((MAX_FRAME + WORD_BYTES) * 2 / WORD_BYTES);

reg delivered_reg = 1'b0;
reg lost_record_reg = 1'b0;

wire reset;
wire ingress_reset;
wire model_reset;
wire egress_reset;
wire accept;
wire is_quiet;
wire are_modules_idle;

nagi_direction_control control_inst (
    .clk(clk),
    .rst(rst),
    .run(run),
    .is_before_epoch(now_ns[63]),
    .is_quiet(is_quiet),
    .are_modules_idle(are_modules_idle),
    .reset(reset),
    .ingress_reset(ingress_reset),
    .model_reset(model_reset),
    .egress_reset(egress_reset),
    .accept(accept),
    .idle(idle)
);

wire [63:0] arrival_ns;
wire [15:0] arrival_bytes;
wire [1:0] arrival_ecn;
wire [31:0] arrival_identity;
wire arrival_is_ipv4;
wire [9:0] arrival_ip_at;
wire [15:0] arrival_ip_word;
wire [15:0] arrival_marked_checksum;
wire arrival_valid;
wire arrival_ready;
wire is_coming;
wire stage_read_en;
wire [BUFFER_WIDTH-1:0] stage_read_addr;
wire [MEM_WIDTH-1:0] stage_read_data;
wire stage_free;
wire [BUFFER_WIDTH:0] stage_free_words;
wire bad_frame;
wire ingress_idle;

nagi_ingress #(
    .DATA_WIDTH(DATA_WIDTH),
    .MEM_WIDTH(MEM_WIDTH),
    .TIMESTAMPED(TIMESTAMPED),
    .TICKS(TICKS),
    .TICK_NS(TICK_NS),
    .MAX_FRAME(MAX_FRAME),
    .STAGE_WIDTH(BUFFER_WIDTH)
) ingress_inst (
    .clk(clk),
    .rst(ingress_reset),
    .accept(accept),
    .now_ns(now_ns),
    .s_axis_tdata(s_axis_tdata),
    .s_axis_tkeep(s_axis_tkeep),
    .s_axis_tvalid(s_axis_tvalid),
    .s_axis_tready(s_axis_tready),
    .s_axis_tlast(s_axis_tlast),
    .s_axis_tuser(s_axis_tuser),
    .arrival_ns(arrival_ns),
    .arrival_bytes(arrival_bytes),
    .arrival_ecn(arrival_ecn),
    .arrival_identity(arrival_identity),
    .arrival_is_ipv4(arrival_is_ipv4),
    .arrival_ip_at(arrival_ip_at),
    .arrival_ip_word(arrival_ip_word),
    .arrival_marked_checksum(arrival_marked_checksum),
    .arrival_valid(arrival_valid),
    .arrival_ready(arrival_ready),
    .is_coming(is_coming),
    .read_en(stage_read_en),
    .read_addr(stage_read_addr),
    .read_data(stage_read_data),
    .read_free(stage_free),
    .read_free_words(stage_free_words),
    .bad_frame(bad_frame),
    .idle(ingress_idle)
);

wire verdict_valid;
wire verdict_ready;
wire [3:0] verdict_fate;
wire verdict_marked;
wire [31:0] verdict_index;
wire verdict_let_in;
wire start_valid;
wire [63:0] start_left_ns;
wire start_lost;
wire free_valid;
wire [15:0] free_words;
wire count_offered;
wire count_overflow;
wire count_memory_overflow;
wire count_loss;
wire count_marked;
wire count_transmitted;
wire [15:0] counted_bytes;
wire [16:0] counted_framed;
wire [50:0] counted_transmitting;
wire [QUEUE_DEPTH_WIDTH:0] waiting;
wire waiting_valid;
wire [63:0] next_end_ns;
wire model_idle;

nagi_link_model #(
    .QUEUE_DEPTH_WIDTH(QUEUE_DEPTH_WIDTH),
    .ADDR_WIDTH(ADDR_WIDTH),
    .WORD_BYTES(WORD_BYTES),
    .DIVIDER_BITS(DIVIDER_BITS),
    .POISSON(POISSON),
    .CONFIG_WORDS(CONFIG_WORDS)
) model_inst (
    .clk(clk),
    .rst(model_reset),
    .configuration(configuration),
    .seed(seed),
    .link(link),
    .direction(DIRECTION),
    .now_ns(now_ns),
    .arrival_ns(arrival_ns),
    .arrival_frame_bytes(arrival_bytes),
    .arrival_ecn(arrival_ecn),
    .arrival_valid(arrival_valid),
    .arrival_ready(arrival_ready),
    .is_coming(is_coming),
    .verdict_valid(verdict_valid),
    .verdict_ready(verdict_ready),
    .verdict_fate(verdict_fate),
    .verdict_marked(verdict_marked),
    .verdict_index(verdict_index),
    .verdict_let_in(verdict_let_in),
    .start_valid(start_valid),
    .start_left_ns(start_left_ns),
    .start_lost(start_lost),
    .free_valid(free_valid),
    .free_words(free_words),
    .count_offered(count_offered),
    .count_overflow(count_overflow),
    .count_memory_overflow(count_memory_overflow),
    .count_loss(count_loss),
    .count_marked(count_marked),
    .count_transmitted(count_transmitted),
    .counted_bytes(counted_bytes),
    .counted_framed(counted_framed),
    .counted_transmitting(counted_transmitting),
    .waiting(waiting),
    .waiting_valid(waiting_valid),
    .next_end_ns(next_end_ns),
    .idle(model_idle)
);

wire writer_ready;
wire [ADDR_WIDTH-1:0] write_addr;
wire [MEM_WIDTH-1:0] write_data;
wire write_valid;
wire write_ready;
wire written;
wire let_in = verdict_fate == 0;

nagi_frame_writer #(
    .MEM_WIDTH(MEM_WIDTH),
    .ADDR_WIDTH(ADDR_WIDTH),
    .STAGE_WIDTH(BUFFER_WIDTH)
) writer_inst (
    .clk(clk),
    .rst(model_reset),
    .verdict_valid(verdict_valid && verdict_ready),
    .verdict_ready(writer_ready),
    .verdict_let_in(let_in),
    .verdict_marked(verdict_marked),
    .frame_bytes(arrival_bytes),
    .is_ipv4(arrival_is_ipv4),
    .ip_at(arrival_ip_at),
    .ip_word(arrival_ip_word),
    .marked_checksum(arrival_marked_checksum),
    .stage_read_en(stage_read_en),
    .stage_read_addr(stage_read_addr),
    .stage_read_data(stage_read_data),
    .stage_free(stage_free),
    .stage_free_words(stage_free_words),
    .write_addr(write_addr),
    .write_data(write_data),
    .write_valid(write_valid),
    .write_ready(write_ready),
    .written(written)
);

wire [QUEUE_DEPTH_WIDTH-1:0] fetched_packet;
wire [15:0] fetched_bytes;
wire [63:0] fetched_arrived_ns;
wire [31:0] fetched_index;
wire [31:0] fetched_identity;
wire [1:0] fetched_ecn;
wire fetched_marked;
wire [63:0] fetched_left_ns;
wire fetched_lost;

nagi_descriptors #(.QUEUE_DEPTH_WIDTH(QUEUE_DEPTH_WIDTH)) descriptors_inst (
    .clk(clk),
    .rst(reset),
    .let_in(verdict_let_in),
    .let_in_bytes(arrival_bytes),
    .let_in_arrived_ns(arrival_ns),
    .let_in_index(verdict_index),
    .let_in_identity(arrival_identity),
    .let_in_ecn(arrival_ecn),
    .let_in_marked(verdict_marked),
    .start_valid(start_valid),
    .start_left_ns(start_left_ns),
    .start_lost(start_lost),
    .packet(fetched_packet),
    .packet_bytes(fetched_bytes),
    .packet_arrived_ns(fetched_arrived_ns),
    .packet_index(fetched_index),
    .packet_identity(fetched_identity),
    .packet_ecn(fetched_ecn),
    .packet_marked(fetched_marked),
    .packet_left_ns(fetched_left_ns),
    .packet_lost(fetched_lost)
);

wire [ADDR_WIDTH-1:0] read_addr;
wire read_valid;
wire read_ready;
wire [MEM_WIDTH-1:0] egress_word;
wire egress_valid;
wire egress_ready;
wire fetched_valid;
wire fetched_ready;
wire reader_busy;
wire reader_idle;
wire port_idle;

nagi_frame_reader #(
    .MEM_WIDTH(MEM_WIDTH),
    .ADDR_WIDTH(ADDR_WIDTH),
    .QUEUE_DEPTH_WIDTH(QUEUE_DEPTH_WIDTH),
    .EGRESS_WIDTH(BUFFER_WIDTH)
) reader_inst (
    .clk(clk),
    .rst(egress_reset),
    .run(run),
    .started(start_valid),
    .written(written),
    .packet(fetched_packet),
    .is_lost(fetched_lost),
    .frame_bytes(fetched_bytes),
    .read_addr(read_addr),
    .read_valid(read_valid),
    .read_ready(read_ready),
    .rdata(mem_rdata),
    .rdata_valid(mem_rdata_valid),
    .word(egress_word),
    .word_valid(egress_valid),
    .word_ready(egress_ready),
    .fetched_valid(fetched_valid),
    .fetched_ready(fetched_ready),
    .free_valid(free_valid),
    .free_words(free_words),
    .busy(reader_busy),
    .idle(reader_idle)
);

nagi_memory_port #(.MEM_WIDTH(MEM_WIDTH), .ADDR_WIDTH(ADDR_WIDTH)) port_inst (
    .clk(clk),
    .rst(rst),
    .write_addr(write_addr),
    .write_data(write_data),
    .write_valid(write_valid),
    .write_ready(write_ready),
    .read_addr(read_addr),
    .read_valid(read_valid),
    .read_ready(read_ready),
    .cmd_valid(mem_cmd_valid),
    .cmd_ready(mem_cmd_ready),
    .cmd_we(mem_cmd_we),
    .cmd_addr(mem_cmd_addr),
    .wdata_valid(mem_wdata_valid),
    .wdata_ready(mem_wdata_ready),
    .wdata(mem_wdata),
    .idle(port_idle)
);

// The reader only requests words for which there is room.
assign mem_rdata_ready = 1'b1;

wire left_valid;
wire left_ready;
wire left_lost;
wire [63:0] left_left_ns;
wire [15:0] left_bytes;
wire [63:0] left_arrived_ns;
wire [31:0] left_index;
wire [31:0] left_identity;
wire [1:0] left_ecn;
wire left_marked;
wire [31:0] left_late_ns;
wire left_is_late;
wire [63:0] release_due_ns;
wire release_busy;
wire release_idle;

nagi_release #(
    .DATA_WIDTH(DATA_WIDTH),
    .MEM_WIDTH(MEM_WIDTH),
    .TICKS(TICKS),
    .TICK_NS(TICK_NS)
) release_inst (
    .clk(clk),
    .rst(egress_reset),
    .run(run),
    .soon_ns(soon_ns),
    .packet_lost(fetched_lost),
    .packet_left_ns(fetched_left_ns),
    .packet_frame_bytes(fetched_bytes),
    .packet_arrived_ns(fetched_arrived_ns),
    .packet_index(fetched_index),
    .packet_identity(fetched_identity),
    .packet_ecn(fetched_ecn),
    .packet_marked(fetched_marked),
    .packet_valid(fetched_valid),
    .packet_ready(fetched_ready),
    .word(egress_word),
    .word_valid(egress_valid),
    .word_ready(egress_ready),
    .m_axis_tdata(m_axis_tdata),
    .m_axis_tkeep(m_axis_tkeep),
    .m_axis_tvalid(m_axis_tvalid),
    .m_axis_tready(m_axis_tready),
    .m_axis_tlast(m_axis_tlast),
    .m_axis_second(m_axis_second),
    .record_valid(left_valid),
    .record_ready(left_ready),
    .record_lost(left_lost),
    .record_left_ns(left_left_ns),
    .record_bytes(left_bytes),
    .record_arrived_ns(left_arrived_ns),
    .record_index(left_index),
    .record_identity(left_identity),
    .record_ecn(left_ecn),
    .record_marked(left_marked),
    .record_late_ns(left_late_ns),
    .record_is_late(left_is_late),
    .next_due_ns(release_due_ns),
    .busy(release_busy),
    .idle(release_idle)
);

// Records of packets that left have precedence over the record of a dropped packet.
wire [255:0] left_record = {8'd0, left_late_ns, DIRECTION, left_marked, left_ecn,
    2'd0, left_lost, 1'b0, left_bytes, left_identity, left_index, left_left_ns, left_arrived_ns};
wire [255:0] dropped_record = {8'd0, 32'd0, DIRECTION, verdict_marked, arrival_ecn, verdict_fate,
    arrival_bytes - 16'd14, arrival_identity, verdict_index, arrival_ns, arrival_ns};
wire drops = verdict_valid && writer_ready && !let_in;
wire left_taken = left_valid && left_ready;

assign record = left_valid ? left_record : dropped_record;
assign record_valid = left_valid || drops;
assign left_ready = record_ready;
assign verdict_ready = writer_ready && (let_in || (record_ready && !left_valid));

nagi_counters #(.QUEUE_DEPTH_WIDTH(QUEUE_DEPTH_WIDTH)) counters_inst (
    .clk(clk),
    .rst(rst),
    .clear(clear_counters || (reset && run)),
    .latch(latch_counters),
    .latches(counters_latch),
    .latched(counters_latched),
    .offered(count_offered),
    .offered_bytes(counted_bytes),
    .delivered(delivered_reg),
    .delivered_bytes(left_bytes),
    .queue_overflow(count_overflow),
    .channel_loss(count_loss),
    .marked(count_marked),
    .transmitted(count_transmitted),
    .transmitted_bytes(counted_framed),
    .transmitting_ns(counted_transmitting),
    .waiting(waiting),
    .waiting_valid(waiting_valid),
    .bad_frame(bad_frame),
    .memory_overflow(count_memory_overflow),
    .lost_record(lost_record_reg),
    .late_release(delivered_reg && left_is_late),
    .late_ns(left_late_ns),
    .read_counter(read_counter),
    .read_value(counter_value)
);

assign is_quiet = writer_ready && !reader_busy && !release_busy && port_idle && !left_valid &&
    !drops;
assign are_modules_idle = ingress_idle && model_idle && writer_ready && reader_idle && port_idle &&
    release_idle;
assign is_active = !reset;
assign next_due_ns = next_end_ns < release_due_ns ? next_end_ns : release_due_ns;

always @(posedge clk) begin
    // Values that belong to a delivery stay stable for one more clock.
    delivered_reg <= left_taken && !left_lost;
    lost_record_reg <= record_lost;
end

endmodule

`resetall
