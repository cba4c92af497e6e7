// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * The core alone, to check its timing. The core has more ports than a package has pins, so a shift
 * register feeds its inputs and another takes its outputs. As on a board, `idle` and `next_due_ns`
 * are not connected. This module is not a part of any design.
 */
module nagi_link_core_alone #
(
    parameter DATA_WIDTH = 64,
    parameter MEM_WIDTH = 64,
    parameter ADDR_WIDTH = 19,
    parameter QUEUE_DEPTH_WIDTH = 10,
    parameter TICKS = 2,
    parameter DIVIDER_BITS = 2,
    parameter POISSON = 1
)
(
    input  wire  clk,
    input  wire  rst,
    input  wire  shift_in,
    input  wire  take,
    output wire  shift_out
);

localparam INPUTS = 64 + (DATA_WIDTH) + (DATA_WIDTH/8) + 1 + 1 + TICKS + (DATA_WIDTH) + (DATA_WIDTH/8) + 1 + 1 + TICKS + 1 + 1 + 12 + 1 + 32 + 1 + 1 + 1 + 1 + (MEM_WIDTH) + 1 + 1 + 1 + (MEM_WIDTH) + 1;
localparam OUTPUTS = 1 + 1 + (DATA_WIDTH) + (DATA_WIDTH/8) + 1 + 1 + 1 + (DATA_WIDTH) + (DATA_WIDTH/8) + 1 + 1 + 1 + 32 + 1 + 1 + 1 + (ADDR_WIDTH) + 1 + (MEM_WIDTH) + 1 + 1 + 1 + (ADDR_WIDTH) + 1 + (MEM_WIDTH) + 1 + 256 + 1;

reg rst_reg = 1'b1;
reg take_reg = 1'b0;
reg [INPUTS-1:0] in_reg = 0;
reg [OUTPUTS-1:0] out_reg = 0;
reg [OUTPUTS-1:0] shifted_reg = 0;

wire [OUTPUTS-1:0] outputs;

assign shift_out = shifted_reg[0];

localparam TIME_NS_AT = 0;
localparam S_AXIS_A_TDATA_AT = TIME_NS_AT + 64;
localparam S_AXIS_A_TKEEP_AT = S_AXIS_A_TDATA_AT + (DATA_WIDTH);
localparam S_AXIS_A_TVALID_AT = S_AXIS_A_TKEEP_AT + (DATA_WIDTH/8);
localparam S_AXIS_A_TLAST_AT = S_AXIS_A_TVALID_AT + 1;
localparam S_AXIS_A_TUSER_AT = S_AXIS_A_TLAST_AT + 1;
localparam S_AXIS_B_TDATA_AT = S_AXIS_A_TUSER_AT + TICKS;
localparam S_AXIS_B_TKEEP_AT = S_AXIS_B_TDATA_AT + (DATA_WIDTH);
localparam S_AXIS_B_TVALID_AT = S_AXIS_B_TKEEP_AT + (DATA_WIDTH/8);
localparam S_AXIS_B_TLAST_AT = S_AXIS_B_TVALID_AT + 1;
localparam S_AXIS_B_TUSER_AT = S_AXIS_B_TLAST_AT + 1;
localparam M_AXIS_A_TREADY_AT = S_AXIS_B_TUSER_AT + TICKS;
localparam M_AXIS_B_TREADY_AT = M_AXIS_A_TREADY_AT + 1;
localparam REG_ADDR_AT = M_AXIS_B_TREADY_AT + 1;
localparam REG_WR_EN_AT = REG_ADDR_AT + 12;
localparam REG_WR_DATA_AT = REG_WR_EN_AT + 1;
localparam REG_RD_EN_AT = REG_WR_DATA_AT + 32;
localparam MEM_FWD_CMD_READY_AT = REG_RD_EN_AT + 1;
localparam MEM_FWD_WDATA_READY_AT = MEM_FWD_CMD_READY_AT + 1;
localparam MEM_FWD_RDATA_VALID_AT = MEM_FWD_WDATA_READY_AT + 1;
localparam MEM_FWD_RDATA_AT = MEM_FWD_RDATA_VALID_AT + 1;
localparam MEM_BWD_CMD_READY_AT = MEM_FWD_RDATA_AT + (MEM_WIDTH);
localparam MEM_BWD_WDATA_READY_AT = MEM_BWD_CMD_READY_AT + 1;
localparam MEM_BWD_RDATA_VALID_AT = MEM_BWD_WDATA_READY_AT + 1;
localparam MEM_BWD_RDATA_AT = MEM_BWD_RDATA_VALID_AT + 1;
localparam M_AXIS_RECORD_TREADY_AT = MEM_BWD_RDATA_AT + (MEM_WIDTH);
localparam S_AXIS_A_TREADY_AT = 0;
localparam S_AXIS_B_TREADY_AT = S_AXIS_A_TREADY_AT + 1;
localparam M_AXIS_A_TDATA_AT = S_AXIS_B_TREADY_AT + 1;
localparam M_AXIS_A_TKEEP_AT = M_AXIS_A_TDATA_AT + (DATA_WIDTH);
localparam M_AXIS_A_TVALID_AT = M_AXIS_A_TKEEP_AT + (DATA_WIDTH/8);
localparam M_AXIS_A_TLAST_AT = M_AXIS_A_TVALID_AT + 1;
localparam M_AXIS_A_TUSER_AT = M_AXIS_A_TLAST_AT + 1;
localparam M_AXIS_B_TDATA_AT = M_AXIS_A_TUSER_AT + 1;
localparam M_AXIS_B_TKEEP_AT = M_AXIS_B_TDATA_AT + (DATA_WIDTH);
localparam M_AXIS_B_TVALID_AT = M_AXIS_B_TKEEP_AT + (DATA_WIDTH/8);
localparam M_AXIS_B_TLAST_AT = M_AXIS_B_TVALID_AT + 1;
localparam M_AXIS_B_TUSER_AT = M_AXIS_B_TLAST_AT + 1;
localparam REG_RD_DATA_AT = M_AXIS_B_TUSER_AT + 1;
localparam REG_ACK_AT = REG_RD_DATA_AT + 32;
localparam MEM_FWD_CMD_VALID_AT = REG_ACK_AT + 1;
localparam MEM_FWD_CMD_WE_AT = MEM_FWD_CMD_VALID_AT + 1;
localparam MEM_FWD_CMD_ADDR_AT = MEM_FWD_CMD_WE_AT + 1;
localparam MEM_FWD_WDATA_VALID_AT = MEM_FWD_CMD_ADDR_AT + (ADDR_WIDTH);
localparam MEM_FWD_WDATA_AT = MEM_FWD_WDATA_VALID_AT + 1;
localparam MEM_FWD_RDATA_READY_AT = MEM_FWD_WDATA_AT + (MEM_WIDTH);
localparam MEM_BWD_CMD_VALID_AT = MEM_FWD_RDATA_READY_AT + 1;
localparam MEM_BWD_CMD_WE_AT = MEM_BWD_CMD_VALID_AT + 1;
localparam MEM_BWD_CMD_ADDR_AT = MEM_BWD_CMD_WE_AT + 1;
localparam MEM_BWD_WDATA_VALID_AT = MEM_BWD_CMD_ADDR_AT + (ADDR_WIDTH);
localparam MEM_BWD_WDATA_AT = MEM_BWD_WDATA_VALID_AT + 1;
localparam MEM_BWD_RDATA_READY_AT = MEM_BWD_WDATA_AT + (MEM_WIDTH);
localparam M_AXIS_RECORD_TDATA_AT = MEM_BWD_RDATA_READY_AT + 1;
localparam M_AXIS_RECORD_TVALID_AT = M_AXIS_RECORD_TDATA_AT + 256;

nagi_link_core #(
    .DATA_WIDTH(DATA_WIDTH),
    .MEM_WIDTH(MEM_WIDTH),
    .ADDR_WIDTH(ADDR_WIDTH),
    .QUEUE_DEPTH_WIDTH(QUEUE_DEPTH_WIDTH),
    .TICKS(TICKS),
    .DIVIDER_BITS(DIVIDER_BITS),
    .POISSON(POISSON)
) core_inst (
    .clk(clk),
    .rst(rst_reg),
    .time_ns(in_reg[TIME_NS_AT +: 64]),
    .s_axis_a_tdata(in_reg[S_AXIS_A_TDATA_AT +: (DATA_WIDTH)]),
    .s_axis_a_tkeep(in_reg[S_AXIS_A_TKEEP_AT +: (DATA_WIDTH/8)]),
    .s_axis_a_tvalid(in_reg[S_AXIS_A_TVALID_AT +: 1]),
    .s_axis_a_tlast(in_reg[S_AXIS_A_TLAST_AT +: 1]),
    .s_axis_a_tuser(in_reg[S_AXIS_A_TUSER_AT +: TICKS]),
    .s_axis_b_tdata(in_reg[S_AXIS_B_TDATA_AT +: (DATA_WIDTH)]),
    .s_axis_b_tkeep(in_reg[S_AXIS_B_TKEEP_AT +: (DATA_WIDTH/8)]),
    .s_axis_b_tvalid(in_reg[S_AXIS_B_TVALID_AT +: 1]),
    .s_axis_b_tlast(in_reg[S_AXIS_B_TLAST_AT +: 1]),
    .s_axis_b_tuser(in_reg[S_AXIS_B_TUSER_AT +: TICKS]),
    .m_axis_a_tready(in_reg[M_AXIS_A_TREADY_AT +: 1]),
    .m_axis_b_tready(in_reg[M_AXIS_B_TREADY_AT +: 1]),
    .reg_addr(in_reg[REG_ADDR_AT +: 12]),
    .reg_wr_en(in_reg[REG_WR_EN_AT +: 1]),
    .reg_wr_data(in_reg[REG_WR_DATA_AT +: 32]),
    .reg_rd_en(in_reg[REG_RD_EN_AT +: 1]),
    .mem_fwd_cmd_ready(in_reg[MEM_FWD_CMD_READY_AT +: 1]),
    .mem_fwd_wdata_ready(in_reg[MEM_FWD_WDATA_READY_AT +: 1]),
    .mem_fwd_rdata_valid(in_reg[MEM_FWD_RDATA_VALID_AT +: 1]),
    .mem_fwd_rdata(in_reg[MEM_FWD_RDATA_AT +: (MEM_WIDTH)]),
    .mem_bwd_cmd_ready(in_reg[MEM_BWD_CMD_READY_AT +: 1]),
    .mem_bwd_wdata_ready(in_reg[MEM_BWD_WDATA_READY_AT +: 1]),
    .mem_bwd_rdata_valid(in_reg[MEM_BWD_RDATA_VALID_AT +: 1]),
    .mem_bwd_rdata(in_reg[MEM_BWD_RDATA_AT +: (MEM_WIDTH)]),
    .m_axis_record_tready(in_reg[M_AXIS_RECORD_TREADY_AT +: 1]),
    .s_axis_a_tready(outputs[S_AXIS_A_TREADY_AT +: 1]),
    .s_axis_b_tready(outputs[S_AXIS_B_TREADY_AT +: 1]),
    .m_axis_a_tdata(outputs[M_AXIS_A_TDATA_AT +: (DATA_WIDTH)]),
    .m_axis_a_tkeep(outputs[M_AXIS_A_TKEEP_AT +: (DATA_WIDTH/8)]),
    .m_axis_a_tvalid(outputs[M_AXIS_A_TVALID_AT +: 1]),
    .m_axis_a_tlast(outputs[M_AXIS_A_TLAST_AT +: 1]),
    .m_axis_a_tuser(outputs[M_AXIS_A_TUSER_AT +: 1]),
    .m_axis_b_tdata(outputs[M_AXIS_B_TDATA_AT +: (DATA_WIDTH)]),
    .m_axis_b_tkeep(outputs[M_AXIS_B_TKEEP_AT +: (DATA_WIDTH/8)]),
    .m_axis_b_tvalid(outputs[M_AXIS_B_TVALID_AT +: 1]),
    .m_axis_b_tlast(outputs[M_AXIS_B_TLAST_AT +: 1]),
    .m_axis_b_tuser(outputs[M_AXIS_B_TUSER_AT +: 1]),
    .reg_rd_data(outputs[REG_RD_DATA_AT +: 32]),
    .reg_ack(outputs[REG_ACK_AT +: 1]),
    .mem_fwd_cmd_valid(outputs[MEM_FWD_CMD_VALID_AT +: 1]),
    .mem_fwd_cmd_we(outputs[MEM_FWD_CMD_WE_AT +: 1]),
    .mem_fwd_cmd_addr(outputs[MEM_FWD_CMD_ADDR_AT +: (ADDR_WIDTH)]),
    .mem_fwd_wdata_valid(outputs[MEM_FWD_WDATA_VALID_AT +: 1]),
    .mem_fwd_wdata(outputs[MEM_FWD_WDATA_AT +: (MEM_WIDTH)]),
    .mem_fwd_rdata_ready(outputs[MEM_FWD_RDATA_READY_AT +: 1]),
    .mem_bwd_cmd_valid(outputs[MEM_BWD_CMD_VALID_AT +: 1]),
    .mem_bwd_cmd_we(outputs[MEM_BWD_CMD_WE_AT +: 1]),
    .mem_bwd_cmd_addr(outputs[MEM_BWD_CMD_ADDR_AT +: (ADDR_WIDTH)]),
    .mem_bwd_wdata_valid(outputs[MEM_BWD_WDATA_VALID_AT +: 1]),
    .mem_bwd_wdata(outputs[MEM_BWD_WDATA_AT +: (MEM_WIDTH)]),
    .mem_bwd_rdata_ready(outputs[MEM_BWD_RDATA_READY_AT +: 1]),
    .m_axis_record_tdata(outputs[M_AXIS_RECORD_TDATA_AT +: 256]),
    .m_axis_record_tvalid(outputs[M_AXIS_RECORD_TVALID_AT +: 1]),
    .idle(),
    .next_due_ns()
);

always @(posedge clk) begin
    rst_reg <= rst;
    take_reg <= take;
    in_reg <= {in_reg[INPUTS-2:0], shift_in};
    out_reg <= outputs;
    shifted_reg <= take_reg ? out_reg : {1'b0, shifted_reg[OUTPUTS-1:1]};
end

endmodule

`resetall
