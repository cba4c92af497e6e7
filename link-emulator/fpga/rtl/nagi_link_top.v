// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * A link with packet memory in block RAM: the core, and one memory per direction.
 */
module nagi_link_top #
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

wire mem_fwd_cmd_valid;
wire mem_fwd_cmd_ready;
wire mem_fwd_cmd_we;
wire [ADDR_WIDTH-1:0] mem_fwd_cmd_addr;
wire mem_fwd_wdata_valid;
wire mem_fwd_wdata_ready;
wire [MEM_WIDTH-1:0] mem_fwd_wdata;
wire mem_fwd_rdata_valid;
wire mem_fwd_rdata_ready;
wire [MEM_WIDTH-1:0] mem_fwd_rdata;
wire mem_bwd_cmd_valid;
wire mem_bwd_cmd_ready;
wire mem_bwd_cmd_we;
wire [ADDR_WIDTH-1:0] mem_bwd_cmd_addr;
wire mem_bwd_wdata_valid;
wire mem_bwd_wdata_ready;
wire [MEM_WIDTH-1:0] mem_bwd_wdata;
wire mem_bwd_rdata_valid;
wire mem_bwd_rdata_ready;
wire [MEM_WIDTH-1:0] mem_bwd_rdata;

nagi_link_core #(
    .DATA_WIDTH(DATA_WIDTH),
    .MEM_WIDTH(MEM_WIDTH),
    .ADDR_WIDTH(ADDR_WIDTH),
    .QUEUE_DEPTH_WIDTH(QUEUE_DEPTH_WIDTH),
    .TIMESTAMPED(TIMESTAMPED),
    .TICKS(TICKS),
    .MAX_FRAME(MAX_FRAME),
    .DIVIDER_BITS(DIVIDER_BITS),
    .POISSON(POISSON),
    .BUILD_ID(BUILD_ID),
    .TICK_PS(TICK_PS)
) core_inst (
    .clk(clk),
    .rst(rst),
    .time_ns(time_ns),
    .s_axis_a_tdata(s_axis_a_tdata),
    .s_axis_a_tkeep(s_axis_a_tkeep),
    .s_axis_a_tvalid(s_axis_a_tvalid),
    .s_axis_a_tready(s_axis_a_tready),
    .s_axis_a_tlast(s_axis_a_tlast),
    .s_axis_a_tuser(s_axis_a_tuser),
    .s_axis_b_tdata(s_axis_b_tdata),
    .s_axis_b_tkeep(s_axis_b_tkeep),
    .s_axis_b_tvalid(s_axis_b_tvalid),
    .s_axis_b_tready(s_axis_b_tready),
    .s_axis_b_tlast(s_axis_b_tlast),
    .s_axis_b_tuser(s_axis_b_tuser),
    .m_axis_a_tdata(m_axis_a_tdata),
    .m_axis_a_tkeep(m_axis_a_tkeep),
    .m_axis_a_tvalid(m_axis_a_tvalid),
    .m_axis_a_tready(m_axis_a_tready),
    .m_axis_a_tlast(m_axis_a_tlast),
    .m_axis_a_tuser(m_axis_a_tuser),
    .m_axis_b_tdata(m_axis_b_tdata),
    .m_axis_b_tkeep(m_axis_b_tkeep),
    .m_axis_b_tvalid(m_axis_b_tvalid),
    .m_axis_b_tready(m_axis_b_tready),
    .m_axis_b_tlast(m_axis_b_tlast),
    .m_axis_b_tuser(m_axis_b_tuser),
    .reg_addr(reg_addr),
    .reg_wr_en(reg_wr_en),
    .reg_wr_data(reg_wr_data),
    .reg_rd_en(reg_rd_en),
    .reg_rd_data(reg_rd_data),
    .reg_ack(reg_ack),
    .m_axis_record_tdata(m_axis_record_tdata),
    .m_axis_record_tvalid(m_axis_record_tvalid),
    .m_axis_record_tready(m_axis_record_tready),
    .idle(idle),
    .next_due_ns(next_due_ns),
    .mem_fwd_cmd_valid(mem_fwd_cmd_valid),
    .mem_fwd_cmd_ready(mem_fwd_cmd_ready),
    .mem_fwd_cmd_we(mem_fwd_cmd_we),
    .mem_fwd_cmd_addr(mem_fwd_cmd_addr),
    .mem_fwd_wdata_valid(mem_fwd_wdata_valid),
    .mem_fwd_wdata_ready(mem_fwd_wdata_ready),
    .mem_fwd_wdata(mem_fwd_wdata),
    .mem_fwd_rdata_valid(mem_fwd_rdata_valid),
    .mem_fwd_rdata_ready(mem_fwd_rdata_ready),
    .mem_fwd_rdata(mem_fwd_rdata),
    .mem_bwd_cmd_valid(mem_bwd_cmd_valid),
    .mem_bwd_cmd_ready(mem_bwd_cmd_ready),
    .mem_bwd_cmd_we(mem_bwd_cmd_we),
    .mem_bwd_cmd_addr(mem_bwd_cmd_addr),
    .mem_bwd_wdata_valid(mem_bwd_wdata_valid),
    .mem_bwd_wdata_ready(mem_bwd_wdata_ready),
    .mem_bwd_wdata(mem_bwd_wdata),
    .mem_bwd_rdata_valid(mem_bwd_rdata_valid),
    .mem_bwd_rdata_ready(mem_bwd_rdata_ready),
    .mem_bwd_rdata(mem_bwd_rdata)
);

nagi_packet_memory #(.MEM_WIDTH(MEM_WIDTH), .ADDR_WIDTH(ADDR_WIDTH)) fwd_memory_inst (
    .clk(clk),
    .rst(rst),
    .cmd_valid(mem_fwd_cmd_valid),
    .cmd_ready(mem_fwd_cmd_ready),
    .cmd_we(mem_fwd_cmd_we),
    .cmd_addr(mem_fwd_cmd_addr),
    .wdata_valid(mem_fwd_wdata_valid),
    .wdata_ready(mem_fwd_wdata_ready),
    .wdata(mem_fwd_wdata),
    .rdata_valid(mem_fwd_rdata_valid),
    .rdata_ready(mem_fwd_rdata_ready),
    .rdata(mem_fwd_rdata)
);

nagi_packet_memory #(.MEM_WIDTH(MEM_WIDTH), .ADDR_WIDTH(ADDR_WIDTH)) bwd_memory_inst (
    .clk(clk),
    .rst(rst),
    .cmd_valid(mem_bwd_cmd_valid),
    .cmd_ready(mem_bwd_cmd_ready),
    .cmd_we(mem_bwd_cmd_we),
    .cmd_addr(mem_bwd_cmd_addr),
    .wdata_valid(mem_bwd_wdata_valid),
    .wdata_ready(mem_bwd_wdata_ready),
    .wdata(mem_bwd_wdata),
    .rdata_valid(mem_bwd_rdata_valid),
    .rdata_ready(mem_bwd_rdata_ready),
    .rdata(mem_bwd_rdata)
);

endmodule

`resetall
