// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

`include "nagi_registers.vh"

/*
 * Both directions of a link: frames of port a leave at port b as `forward` is configured, frames
 * of port b leave at port a as `backward` is. Time is an input, in nanoseconds; nothing here counts
 * clocks. What the core calls now is `time_ns - epoch_ns`, three clocks late.
 */
module nagi_link_core #
(
    // Bits of a beat of the frame streams: a power of two, 8 to 512.
    parameter DATA_WIDTH = 64,
    // Bits of a word of packet memory: a power of two, at least 64 and at least DATA_WIDTH.
    parameter MEM_WIDTH = DATA_WIDTH < 64 ? 64 : DATA_WIDTH,
    // log2 of the words of packet memory, a direction.
    parameter ADDR_WIDTH = 13,
    // log2 of the packets held at a time, a direction.
    parameter QUEUE_DEPTH_WIDTH = 10,
    // 1: a frame brings its arrival instant with it, in tuser.
    parameter TIMESTAMPED = 0,
    // Longest frame in bytes, without FCS.
    parameter MAX_FRAME = 1536,
    // Quotient bits that the rate server's divider finds in a clock.
    parameter DIVIDER_BITS = 1,
    // For the registers only: an identification of the sources, and the clock's period in ps.
    parameter BUILD_ID = 0,
    parameter CLOCK_PERIOD_PS = 8000
)
(
    input  wire                              clk,
    input  wire                              rst,
    input  wire [63:0]                       time_ns,

    /*
     * Frames in, from the Ethernet header on, without FCS. tuser[0], with the last beat: the frame
     * is bad. tuser[64:1], with the last beat, if TIMESTAMPED: its arrival instant, less epoch_ns.
     */
    input  wire [DATA_WIDTH-1:0]             s_axis_a_tdata,
    input  wire [DATA_WIDTH/8-1:0]           s_axis_a_tkeep,
    input  wire                              s_axis_a_tvalid,
    output wire                              s_axis_a_tready,
    input  wire                              s_axis_a_tlast,
    input  wire [(TIMESTAMPED ? 64 : 0):0]   s_axis_a_tuser,

    input  wire [DATA_WIDTH-1:0]             s_axis_b_tdata,
    input  wire [DATA_WIDTH/8-1:0]           s_axis_b_tkeep,
    input  wire                              s_axis_b_tvalid,
    output wire                              s_axis_b_tready,
    input  wire                              s_axis_b_tlast,
    input  wire [(TIMESTAMPED ? 64 : 0):0]   s_axis_b_tuser,

    /*
     * Frames out. tuser: 0.
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
     * Registers: one access at a time, held until reg_ack.
     */
    input  wire [11:0]                       reg_addr,
    input  wire                              reg_wr_en,
    input  wire [31:0]                       reg_wr_data,
    input  wire                              reg_rd_en,
    output wire [31:0]                       reg_rd_data,
    output wire                              reg_ack,

    /*
     * Packet memory, a port a direction: in order, one word a command.
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
     * Nothing is being worked on: until time_ns reaches next_due_ns, or a beat comes in, further
     * clocks change nothing. next_due_ns: all ones if nothing is due; valid with idle.
     */
    output wire                              idle,
    output wire [63:0]                       next_due_ns
);
endmodule

`resetall
