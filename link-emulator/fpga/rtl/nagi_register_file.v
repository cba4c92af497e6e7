// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

`include "nagi_registers.vh"

/*
 * The registers of registers.yaml. An access takes some clocks; latched counters come from the
 * directions.
 */
module nagi_register_file #
(
    parameter DATA_WIDTH = 64,
    parameter MEM_WIDTH = 64,
    parameter ADDR_WIDTH = 13,
    parameter QUEUE_DEPTH_WIDTH = 10,
    parameter MAX_FRAME = 1536,
    parameter BUILD_ID = 0,
    parameter CLOCK_PERIOD_PS = 8000,
    parameter POISSON = 1,
    // Words that configure a direction.
    parameter CONFIG_WORDS = 20
)
(
    input  wire                        clk,
    input  wire                        rst,

    input  wire [11:0]                 reg_addr,
    input  wire                        reg_wr_en,
    input  wire [31:0]                 reg_wr_data,
    input  wire                        reg_rd_en,
    output wire [31:0]                 reg_rd_data,
    output wire                        reg_ack,

    input  wire [63:0]                 now_ns,
    input  wire                        is_active,
    input  wire                        is_idle,

    output wire                        enable,
    // Asks for a latch; it is the instant of the latch; it is over.
    output wire                        latch,
    input  wire                        latches,
    input  wire                        latched,
    output wire                        clear,
    output wire [31:0]                 link,
    output wire [63:0]                 seed,
    output wire [63:0]                 epoch_ns,
    output wire [CONFIG_WORDS*32-1:0]  forward_config,
    output wire [CONFIG_WORDS*32-1:0]  backward_config,

    output wire [3:0]                  read_counter,
    input  wire [63:0]                 forward_counter,
    input  wire [63:0]                 backward_counter
);

localparam [2:0]
    STATE_IDLE = 3'd0,
    STATE_WAIT_1 = 3'd1,
    STATE_WAIT_2 = 3'd2,
    STATE_SELECT = 3'd3,
    STATE_ACK = 3'd4,
    STATE_PAUSE = 3'd5,
    STATE_LATCH = 3'd6;

localparam [3:0]
    GENERAL = 4'd0,
    FORWARD = 4'd1,
    BACKWARD = 4'd2;

reg [2:0] state_reg = STATE_IDLE;
reg [11:0] addr_reg = 0;
reg [31:0] value_reg = 0;
reg enable_reg = 1'b0;
reg latch_reg = 1'b0;
reg clear_reg = 1'b0;
reg [31:0] link_reg = 0;
reg [63:0] seed_reg = 0;
reg [63:0] epoch_reg = 0;
reg [63:0] time_reg = 0;
reg [CONFIG_WORDS*32-1:0] forward_reg = 0;
reg [CONFIG_WORDS*32-1:0] backward_reg = 0;
reg [31:0] general_value_reg = 0;
reg [31:0] config_value_reg = 0;
reg [31:0] forward_value_reg = 0;
reg [31:0] backward_value_reg = 0;
// What has been written to the directions' registers, to be read.
reg [31:0] written_memory[63:0];
integer i;

// All registers begin with 0.
initial begin
    for (i = 0; i < 64; i = i + 1) begin
        written_memory[i] = 0;
    end
end

wire [3:0] block = addr_reg[11:8];
wire is_counter = addr_reg[7];
// The core takes no other configuration while it works.
wire may_write = !enable_reg && !is_active;

assign reg_rd_data = value_reg;
assign reg_ack = state_reg == STATE_ACK;
assign enable = enable_reg;
assign latch = latch_reg;
assign clear = clear_reg;
assign link = link_reg;
assign seed = seed_reg;
assign epoch_ns = epoch_reg;
assign forward_config = forward_reg;
assign backward_config = backward_reg;
assign read_counter = addr_reg[6:3];

// Bits of a direction's words that are in use; the others stay 0.
function [31:0] used;
    input [4:0] word;
    case ({5'd0, word, 2'd0})
        `NAGI_DIRECTION_RATE_BPS_HI: used = 32'h000000ff;
        `NAGI_DIRECTION_MODE: used = 32'h0000f1ff;
        `NAGI_DIRECTION_OVERHEAD_BYTES: used = 32'h0000ffff;
        `NAGI_DIRECTION_QUEUE_LIMIT_HI: used = 32'h000001ff;
        `NAGI_DIRECTION_MARK_THRESHOLD_HI: used = 32'h000001ff;
        `NAGI_DIRECTION_DELAY_NS_HI: used = 32'h000003ff;
        default: used = word < CONFIG_WORDS[4:0] ? 32'hffffffff : 32'd0;
    endcase
endfunction

always @(posedge clk) begin
    latch_reg <= 1'b0;
    clear_reg <= 1'b0;
    if (latches) begin
        time_reg <= now_ns;
    end

    case (state_reg)
        STATE_IDLE: begin
            addr_reg <= reg_addr;
            if (reg_wr_en) begin
                if (reg_addr == `NAGI_CONTROL) enable_reg <= reg_wr_data[`NAGI_CONTROL_ENABLE_SHIFT];
                if (reg_addr == `NAGI_COMMAND) begin
                    latch_reg <= reg_wr_data[`NAGI_COMMAND_LATCH_SHIFT];
                    clear_reg <= reg_wr_data[`NAGI_COMMAND_CLEAR_SHIFT];
                end
                if (may_write) begin
                    case (reg_addr)
                        `NAGI_LINK: link_reg <= reg_wr_data;
                        `NAGI_SEED_LO: seed_reg[31:0] <= reg_wr_data;
                        `NAGI_SEED_HI: seed_reg[63:32] <= reg_wr_data;
                        `NAGI_EPOCH_NS_LO: epoch_reg[31:0] <= reg_wr_data;
                        `NAGI_EPOCH_NS_HI: epoch_reg[63:32] <= reg_wr_data;
                        default: ;
                    endcase
                    if ((reg_addr[11:8] == FORWARD || reg_addr[11:8] == BACKWARD) && !reg_addr[7]) begin
                        written_memory[{reg_addr[9], reg_addr[6:2]}] <= reg_wr_data;
                    end
                    for (i = 0; i < CONFIG_WORDS; i = i + 1) begin
                        if ({24'd0, reg_addr[7:0]} == i * 4 && reg_addr[11:8] == FORWARD) begin
                            forward_reg[i*32 +: 32] <= reg_wr_data & used(i[4:0]);
                        end
                        if ({24'd0, reg_addr[7:0]} == i * 4 && reg_addr[11:8] == BACKWARD) begin
                            backward_reg[i*32 +: 32] <= reg_wr_data & used(i[4:0]);
                        end
                    end
                end
                state_reg <= reg_addr == `NAGI_COMMAND &&
                    reg_wr_data[`NAGI_COMMAND_LATCH_SHIFT] ? STATE_LATCH : STATE_ACK;
            end else if (reg_rd_en) begin
                state_reg <= STATE_WAIT_1;
            end
        end
        STATE_WAIT_1: state_reg <= STATE_WAIT_2;
        STATE_WAIT_2: state_reg <= STATE_SELECT;
        STATE_SELECT: begin
            case (block)
                GENERAL: value_reg <= general_value_reg;
                FORWARD: value_reg <= is_counter ? forward_value_reg : config_value_reg;
                BACKWARD: value_reg <= is_counter ? backward_value_reg : config_value_reg;
                default: value_reg <= 0;
            endcase
            state_reg <= STATE_ACK;
        end
        STATE_LATCH: begin
            if (latched) begin
                state_reg <= STATE_ACK;
            end
        end
        STATE_ACK: state_reg <= STATE_PAUSE;
        // Until whoever asked has seen the answer.
        STATE_PAUSE: state_reg <= STATE_IDLE;
        default: state_reg <= STATE_IDLE;
    endcase

    general_value_reg <= 0;
    case (addr_reg)
        `NAGI_MAGIC: general_value_reg <= `NAGI_MAGIC_VALUE;
        `NAGI_MAP_VERSION: general_value_reg <= `NAGI_MAP_VERSION_VALUE;
        `NAGI_BUILD_ID: general_value_reg <= BUILD_ID;
        `NAGI_WIDTHS: begin
            general_value_reg[`NAGI_WIDTHS_DATA_WIDTH_BITS] <= DATA_WIDTH[15:0];
            general_value_reg[`NAGI_WIDTHS_MEM_WIDTH_BITS] <= MEM_WIDTH[15:0];
        end
        `NAGI_SIZES: begin
            general_value_reg[`NAGI_SIZES_ADDR_WIDTH_BITS] <= ADDR_WIDTH[7:0];
            general_value_reg[`NAGI_SIZES_QUEUE_DEPTH_WIDTH_BITS] <= QUEUE_DEPTH_WIDTH[7:0];
            general_value_reg[`NAGI_SIZES_MAX_FRAME_BITS] <= MAX_FRAME[15:0];
        end
        `NAGI_CLOCK_PERIOD_PS: general_value_reg <= CLOCK_PERIOD_PS;
        `NAGI_FEATURES: general_value_reg[`NAGI_FEATURES_POISSON_SHIFT] <= POISSON != 0;
        `NAGI_CONTROL: general_value_reg[`NAGI_CONTROL_ENABLE_SHIFT] <= enable_reg;
        `NAGI_STATUS: begin
            general_value_reg[`NAGI_STATUS_ACTIVE_SHIFT] <= is_active;
            general_value_reg[`NAGI_STATUS_IDLE_SHIFT] <= is_idle;
        end
        `NAGI_LINK: general_value_reg <= link_reg;
        `NAGI_SEED_LO: general_value_reg <= seed_reg[31:0];
        `NAGI_SEED_HI: general_value_reg <= seed_reg[63:32];
        `NAGI_EPOCH_NS_LO: general_value_reg <= epoch_reg[31:0];
        `NAGI_EPOCH_NS_HI: general_value_reg <= epoch_reg[63:32];
        `NAGI_TIME_NS_LO: general_value_reg <= time_reg[31:0];
        `NAGI_TIME_NS_HI: general_value_reg <= time_reg[63:32];
        default: ;
    endcase

    forward_value_reg <= addr_reg[2] ? forward_counter[63:32] : forward_counter[31:0];
    backward_value_reg <= addr_reg[2] ? backward_counter[63:32] : backward_counter[31:0];
    config_value_reg <= written_memory[{addr_reg[9], addr_reg[6:2]}] & used(addr_reg[6:2]);

    if (rst) begin
        state_reg <= STATE_IDLE;
        enable_reg <= 1'b0;
        latch_reg <= 1'b0;
        clear_reg <= 1'b0;
        link_reg <= 0;
        seed_reg <= 0;
        epoch_reg <= 0;
        time_reg <= 0;
    end
end

endmodule

`resetall
