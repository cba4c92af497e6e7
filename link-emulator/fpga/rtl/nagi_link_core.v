// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

`include "nagi_registers.vh"

/*
 * Both directions of a link. Frames of port a leave at port b, as `forward` is configured. Frames
 * of port b leave at port a, as `backward` is configured. Time is an input, in nanoseconds. The
 * core does not count clocks to measure time. The core's current instant is `time_ns - epoch_ns`,
 * four clocks late.
 *
 * The hierarchy is kept, so that the core is mapped separately. Slower paths around the core, at
 * slower clocks, then do not affect its mapping.
 */
(* keep_hierarchy *)
module nagi_link_core #
(
    // Bits of a beat of the frame streams: a power of two, 8 to 512.
    parameter DATA_WIDTH = 64,
    // Bits of a word of packet memory: a power of two, at least 64 and at least DATA_WIDTH.
    parameter MEM_WIDTH = DATA_WIDTH < 64 ? 64 : DATA_WIDTH,
    // log2 of the words of packet memory, per direction.
    parameter ADDR_WIDTH = 13,
    // log2 of the maximum number of packets held at a time, per direction.
    parameter QUEUE_DEPTH_WIDTH = 10,
    // 1: each frame carries its arrival instant in tuser.
    parameter TIMESTAMPED = 0,
    // Ticks of time per clock: 1, or 2 for instants finer than a clock. If 2, time_ns is the
    // instant of the first tick. If TIMESTAMPED is 1, TICKS has no effect.
    parameter TICKS = 1,
    // Longest frame in bytes, without FCS.
    parameter MAX_FRAME = 1536,
    // Bits of the quotient that the rate server's divider computes per clock.
    parameter DIVIDER_BITS = 1,
    // 0: the core has no Poisson losses, which take a seventh of its area.
    parameter POISSON = 1,
    // 0: the output next_due_ns, which only simulations use, is not computed.
    parameter NEXT_DUE = 1,
    // log2 of the number of records that can wait. If 0, a record that is not taken at once is
    // lost.
    parameter RECORDS_WIDTH = 4,
    // Identification of the sources, for the registers only.
    parameter BUILD_ID = 0,
    // Length of a tick, in ps.
    parameter TICK_PS = 8000
)
(
    input  wire                              clk,
    input  wire                              rst,
    input  wire [63:0]                       time_ns,

    /*
     * Input frames, from the Ethernet header on, without FCS. These bits of tuser are valid with
     * the last beat. tuser[0]: the frame is bad. tuser[64:1], if TIMESTAMPED: arrival instant minus
     * epoch_ns. tuser[1], if TICKS is 2: the frame arrived in the clock's second tick.
     */
    input  wire [DATA_WIDTH-1:0]             s_axis_a_tdata,
    input  wire [DATA_WIDTH/8-1:0]           s_axis_a_tkeep,
    input  wire                              s_axis_a_tvalid,
    output wire                              s_axis_a_tready,
    input  wire                              s_axis_a_tlast,
    input  wire [(TIMESTAMPED ? 64 : TICKS-1):0] s_axis_a_tuser,

    input  wire [DATA_WIDTH-1:0]             s_axis_b_tdata,
    input  wire [DATA_WIDTH/8-1:0]           s_axis_b_tkeep,
    input  wire                              s_axis_b_tvalid,
    output wire                              s_axis_b_tready,
    input  wire                              s_axis_b_tlast,
    input  wire [(TIMESTAMPED ? 64 : TICKS-1):0] s_axis_b_tuser,

    /*
     * Output frames. tuser is valid with the first beat, in the clock in which this beat is taken.
     * tuser is 1 if the frame must leave in the clock's second tick. If TICKS is 1, tuser is 0.
     */
    output wire [DATA_WIDTH-1:0]             m_axis_a_tdata,
    output wire [DATA_WIDTH/8-1:0]           m_axis_a_tkeep,
    output wire                              m_axis_a_tvalid,
    input  wire                              m_axis_a_tready,
    output wire                              m_axis_a_tlast,
    output wire                              m_axis_a_tuser,

    output wire [DATA_WIDTH-1:0]             m_axis_b_tdata,
    output wire [DATA_WIDTH/8-1:0]           m_axis_b_tkeep,
    output wire                              m_axis_b_tvalid,
    input  wire                              m_axis_b_tready,
    output wire                              m_axis_b_tlast,
    output wire                              m_axis_b_tuser,

    /*
     * Registers. One access is made at a time, and it is held until reg_ack.
     */
    input  wire [11:0]                       reg_addr,
    input  wire                              reg_wr_en,
    input  wire [31:0]                       reg_wr_data,
    input  wire                              reg_rd_en,
    output wire [31:0]                       reg_rd_data,
    output wire                              reg_ack,

    /*
     * Packet memory, one port per direction. Commands are served in order, one word per command.
     */
    output wire                              mem_fwd_cmd_valid,
    input  wire                              mem_fwd_cmd_ready,
    output wire                              mem_fwd_cmd_we,
    output wire [ADDR_WIDTH-1:0]             mem_fwd_cmd_addr,
    output wire                              mem_fwd_wdata_valid,
    input  wire                              mem_fwd_wdata_ready,
    output wire [MEM_WIDTH-1:0]              mem_fwd_wdata,
    input  wire                              mem_fwd_rdata_valid,
    output wire                              mem_fwd_rdata_ready,
    input  wire [MEM_WIDTH-1:0]              mem_fwd_rdata,

    output wire                              mem_bwd_cmd_valid,
    input  wire                              mem_bwd_cmd_ready,
    output wire                              mem_bwd_cmd_we,
    output wire [ADDR_WIDTH-1:0]             mem_bwd_cmd_addr,
    output wire                              mem_bwd_wdata_valid,
    input  wire                              mem_bwd_wdata_ready,
    output wire [MEM_WIDTH-1:0]              mem_bwd_wdata,
    input  wire                              mem_bwd_rdata_valid,
    output wire                              mem_bwd_rdata_ready,
    input  wire [MEM_WIDTH-1:0]              mem_bwd_rdata,

    /*
     * A record of every packet.
     */
    output wire [255:0]                      m_axis_record_tdata,
    output wire                              m_axis_record_tvalid,
    input  wire                              m_axis_record_tready,

    /*
     * `idle`: no work is in progress. Further clocks change nothing until time_ns reaches
     * next_due_ns or a beat arrives. next_due_ns is valid with idle, and is all ones if nothing is
     * due.
     */
    output wire                              idle,
    output wire [63:0]                       next_due_ns
);

localparam CONFIG_WORDS = 20;
localparam TICK_NS = (TICK_PS + 999) / 1000;
// Clocks after which all registers have followed a change.
localparam SETTLE_CLOCKS = 15;

reg [63:0] time_reg = 0;
reg [63:0] soon_reg = 0;   // time_ns - epoch_ns
reg [63:0] later_reg = 0;  // soon_reg, one clock later
reg [63:0] now_reg = 0;    // soon_reg, two clocks later
reg [3:0] settle_reg = 0;  // remaining clocks until the core is idle
reg idle_reg = 1'b0;
reg directions_idle_reg = 1'b0;
reg time_stands_reg = 1'b0;
reg is_turn_backward_reg = 1'b0;
reg is_turn_forward_reg = 1'b1;  // inverse of is_turn_backward_reg, to limit its fan-out
reg [63:0] due_reg = 0;
reg [63:0] next_due_reg = 0;

wire enable;
wire latch;
wire clear;
wire forward_latch;
wire forward_latched;
wire backward_latch;
wire backward_latched;
// Both directions latch in the same clock.
wire unused = &{1'b0, backward_latch, backward_latched};
wire [31:0] link;
wire [63:0] seed;
wire [63:0] epoch_ns;
wire [CONFIG_WORDS*32-1:0] forward_config;
wire [CONFIG_WORDS*32-1:0] backward_config;
wire [3:0] read_counter;
wire [63:0] forward_counter;
wire [63:0] backward_counter;
wire forward_active;
wire backward_active;
wire forward_idle;
wire backward_idle;
wire [63:0] forward_due_ns;
wire [63:0] backward_due_ns;
wire [255:0] forward_record;
wire forward_record_valid;
wire forward_record_ready;
wire [255:0] backward_record;
wire backward_record_valid;
wire backward_record_ready;
wire record_room;

assign idle = idle_reg;
assign next_due_ns = NEXT_DUE != 0 ? next_due_reg : {64{1'b1}};

nagi_register_file #(
    .DATA_WIDTH(DATA_WIDTH),
    .MEM_WIDTH(MEM_WIDTH),
    .ADDR_WIDTH(ADDR_WIDTH),
    .QUEUE_DEPTH_WIDTH(QUEUE_DEPTH_WIDTH),
    .MAX_FRAME(MAX_FRAME),
    .BUILD_ID(BUILD_ID),
    .TICK_PS(TICK_PS),
    .POISSON(POISSON),
    .CONFIG_WORDS(CONFIG_WORDS)
) registers_inst (
    .clk(clk),
    .rst(rst),
    .reg_addr(reg_addr),
    .reg_wr_en(reg_wr_en),
    .reg_wr_data(reg_wr_data),
    .reg_rd_en(reg_rd_en),
    .reg_rd_data(reg_rd_data),
    .reg_ack(reg_ack),
    .now_ns(now_reg),
    .is_active(forward_active || backward_active),
    .is_idle(idle_reg),
    .enable(enable),
    .latch(latch),
    .latches(forward_latch),
    .latched(forward_latched),
    .clear(clear),
    .link(link),
    .seed(seed),
    .epoch_ns(epoch_ns),
    .forward_config(forward_config),
    .backward_config(backward_config),
    .read_counter(read_counter),
    .forward_counter(forward_counter),
    .backward_counter(backward_counter)
);

nagi_link_direction #(
    .DATA_WIDTH(DATA_WIDTH),
    .MEM_WIDTH(MEM_WIDTH),
    .ADDR_WIDTH(ADDR_WIDTH),
    .QUEUE_DEPTH_WIDTH(QUEUE_DEPTH_WIDTH),
    .TIMESTAMPED(TIMESTAMPED),
    .TICKS(TICKS),
    .MAX_FRAME(MAX_FRAME),
    .DIVIDER_BITS(DIVIDER_BITS),
    .POISSON(POISSON),
    .TICK_NS(TICK_NS),
    .CONFIG_WORDS(CONFIG_WORDS),
    .DIRECTION(1'b0)
) forward_inst (
    .clk(clk),
    .rst(rst),
    .run(enable),
    .is_active(forward_active),
    .soon_ns(soon_reg),
    .now_ns(now_reg),
    .configuration(forward_config),
    .seed(seed),
    .link(link),
    .latch_counters(latch),
    .counters_latch(forward_latch),
    .counters_latched(forward_latched),
    .clear_counters(clear),
    .read_counter(read_counter),
    .counter_value(forward_counter),
    .s_axis_tdata(s_axis_a_tdata),
    .s_axis_tkeep(s_axis_a_tkeep),
    .s_axis_tvalid(s_axis_a_tvalid),
    .s_axis_tready(s_axis_a_tready),
    .s_axis_tlast(s_axis_a_tlast),
    .s_axis_tuser(s_axis_a_tuser),
    .m_axis_tdata(m_axis_b_tdata),
    .m_axis_tkeep(m_axis_b_tkeep),
    .m_axis_tvalid(m_axis_b_tvalid),
    .m_axis_tready(m_axis_b_tready),
    .m_axis_tlast(m_axis_b_tlast),
    .m_axis_second(m_axis_b_tuser),
    .mem_cmd_valid(mem_fwd_cmd_valid),
    .mem_cmd_ready(mem_fwd_cmd_ready),
    .mem_cmd_we(mem_fwd_cmd_we),
    .mem_cmd_addr(mem_fwd_cmd_addr),
    .mem_wdata_valid(mem_fwd_wdata_valid),
    .mem_wdata_ready(mem_fwd_wdata_ready),
    .mem_wdata(mem_fwd_wdata),
    .mem_rdata_valid(mem_fwd_rdata_valid),
    .mem_rdata_ready(mem_fwd_rdata_ready),
    .mem_rdata(mem_fwd_rdata),
    .record(forward_record),
    .record_valid(forward_record_valid),
    .record_ready(forward_record_ready),
    .record_lost(forward_record_valid && forward_record_ready && !record_room),
    .idle(forward_idle),
    .next_due_ns(forward_due_ns)
);

nagi_link_direction #(
    .DATA_WIDTH(DATA_WIDTH),
    .MEM_WIDTH(MEM_WIDTH),
    .ADDR_WIDTH(ADDR_WIDTH),
    .QUEUE_DEPTH_WIDTH(QUEUE_DEPTH_WIDTH),
    .TIMESTAMPED(TIMESTAMPED),
    .TICKS(TICKS),
    .MAX_FRAME(MAX_FRAME),
    .DIVIDER_BITS(DIVIDER_BITS),
    .POISSON(POISSON),
    .TICK_NS(TICK_NS),
    .CONFIG_WORDS(CONFIG_WORDS),
    .DIRECTION(1'b1)
) backward_inst (
    .clk(clk),
    .rst(rst),
    .run(enable),
    .is_active(backward_active),
    .soon_ns(soon_reg),
    .now_ns(now_reg),
    .configuration(backward_config),
    .seed(seed),
    .link(link),
    .latch_counters(latch),
    .counters_latch(backward_latch),
    .counters_latched(backward_latched),
    .clear_counters(clear),
    .read_counter(read_counter),
    .counter_value(backward_counter),
    .s_axis_tdata(s_axis_b_tdata),
    .s_axis_tkeep(s_axis_b_tkeep),
    .s_axis_tvalid(s_axis_b_tvalid),
    .s_axis_tready(s_axis_b_tready),
    .s_axis_tlast(s_axis_b_tlast),
    .s_axis_tuser(s_axis_b_tuser),
    .m_axis_tdata(m_axis_a_tdata),
    .m_axis_tkeep(m_axis_a_tkeep),
    .m_axis_tvalid(m_axis_a_tvalid),
    .m_axis_tready(m_axis_a_tready),
    .m_axis_tlast(m_axis_a_tlast),
    .m_axis_second(m_axis_a_tuser),
    .mem_cmd_valid(mem_bwd_cmd_valid),
    .mem_cmd_ready(mem_bwd_cmd_ready),
    .mem_cmd_we(mem_bwd_cmd_we),
    .mem_cmd_addr(mem_bwd_cmd_addr),
    .mem_wdata_valid(mem_bwd_wdata_valid),
    .mem_wdata_ready(mem_bwd_wdata_ready),
    .mem_wdata(mem_bwd_wdata),
    .mem_rdata_valid(mem_bwd_rdata_valid),
    .mem_rdata_ready(mem_bwd_rdata_ready),
    .mem_rdata(mem_bwd_rdata),
    .record(backward_record),
    .record_valid(backward_record_valid),
    .record_ready(backward_record_ready),
    .record_lost(backward_record_valid && backward_record_ready && !record_room),
    .idle(backward_idle),
    .next_due_ns(backward_due_ns)
);

// The directions take turns, clock by clock.
assign forward_record_ready = is_turn_forward_reg;
assign backward_record_ready = !is_turn_forward_reg;

// A record that does not fit is lost.
wire [255:0] next_record = is_turn_backward_reg ? backward_record : forward_record;
wire next_record_valid = is_turn_forward_reg ? forward_record_valid : backward_record_valid;

generate
    if (RECORDS_WIDTH > 0) begin : records
        nagi_fifo #(.WIDTH(256), .DEPTH_WIDTH(RECORDS_WIDTH)) fifo_inst (
            .clk(clk),
            .rst(rst),
            .s_data(next_record),
            .s_valid(next_record_valid),
            .s_ready(record_room),
            .m_data(m_axis_record_tdata),
            .m_valid(m_axis_record_tvalid),
            .m_ready(m_axis_record_tready)
        );
    end else begin : records
        assign m_axis_record_tdata = next_record;
        assign m_axis_record_tvalid = next_record_valid;
        assign record_room = m_axis_record_tready;
    end
endgenerate

wire is_quiet = directions_idle_reg && !m_axis_record_tvalid && time_stands_reg &&
    !s_axis_a_tvalid && !s_axis_b_tvalid;

always @(posedge clk) begin
    time_reg <= time_ns;
    time_stands_reg <= time_reg == time_ns;
    directions_idle_reg <= forward_idle && backward_idle;
    is_turn_backward_reg <= !is_turn_backward_reg;
    is_turn_forward_reg <= !is_turn_forward_reg;
    soon_reg <= time_reg - epoch_ns;
    later_reg <= soon_reg;
    now_reg <= later_reg;

    if (!is_quiet) begin
        settle_reg <= SETTLE_CLOCKS[3:0];
    end else if (settle_reg != 0) begin
        settle_reg <= settle_reg - 1'b1;
    end
    idle_reg <= is_quiet && settle_reg == 0;

    due_reg <= forward_due_ns < backward_due_ns ? forward_due_ns : backward_due_ns;
    next_due_reg <= &due_reg ? due_reg : due_reg + epoch_ns;

    if (rst) begin
        settle_reg <= SETTLE_CLOCKS[3:0];
        idle_reg <= 1'b0;
    end
end

endmodule

`resetall
