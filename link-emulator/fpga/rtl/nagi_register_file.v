// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

`include "nagi_registers.vh"

/*
 * The registers of registers.yaml. An access takes several clocks. The directions provide the
 * latched counters.
 */
module nagi_register_file #
(
    parameter DATA_WIDTH = 64,
    parameter MEM_WIDTH = 64,
    parameter ADDR_WIDTH = 13,
    parameter QUEUE_DEPTH_WIDTH = 10,
    parameter MAX_FRAME = 1536,
    parameter BUILD_ID = 0,
    parameter TICK_PS = 8000,
    parameter POISSON = 1,
    // Number of words that configure a direction.
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
    // `latch` requests that all counters are stored for reading. `latches` is 1 in the clock whose
    // values are stored. `latched` is 1 when all counters have been stored.
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

localparam [3:0]
    STATE_IDLE = 4'd0,
    STATE_WAIT_1 = 4'd1,
    STATE_WAIT_2 = 4'd2,
    STATE_SELECT = 4'd3,
    STATE_ACK = 4'd4,
    STATE_PAUSE = 4'd5,
    STATE_LATCH = 4'd6,
    STATE_CHOOSE = 4'd7,
    STATE_PREPARE = 4'd8,
    STATE_WRITE = 4'd9;

localparam [3:0]
    GENERAL = 4'd0,
    FORWARD = 4'd1,
    BACKWARD = 4'd2;

localparam
    CONTROL_WORD = `NAGI_CONTROL / 4,
    COMMAND_WORD = `NAGI_COMMAND / 4,
    LINK_WORD = `NAGI_LINK / 4,
    SEED_LO_WORD = `NAGI_SEED_LO / 4,
    SEED_HI_WORD = `NAGI_SEED_HI / 4,
    EPOCH_LO_WORD = `NAGI_EPOCH_NS_LO / 4,
    EPOCH_HI_WORD = `NAGI_EPOCH_NS_HI / 4;
// These registers can also be written while the core is enabled.
localparam [31:0] ALWAYS_WRITABLE = (32'd1 << CONTROL_WORD) | (32'd1 << COMMAND_WORD);

reg [3:0] state_reg = STATE_IDLE;
reg [11:0] addr_reg = 0;
reg [31:0] is_word_reg = 0;         // word of addr_reg, one-hot
reg [31:0] writes_word_reg = 0;     // general register that is written, in STATE_WRITE
reg [CONFIG_WORDS-1:0] writes_forward_word_reg = 0;
reg [CONFIG_WORDS-1:0] writes_backward_word_reg = 0;
reg [31:0] used_reg = 0;            // bits of the word that are in use
reg [31:0] value_reg = 0;
// The block that is written to. may_write_reg: the write is permitted.
reg writes_general_reg = 1'b0;
reg writes_forward_reg = 1'b0;
reg writes_backward_reg = 1'b0;
reg may_write_reg = 1'b0;
reg enable_reg = 1'b0;
reg latch_reg = 1'b0;
reg clear_reg = 1'b0;
reg [31:0] link_reg = 0;
reg [63:0] seed_reg = 0;
reg [63:0] epoch_reg = 0;
reg [63:0] time_reg = 0;
reg [CONFIG_WORDS*32-1:0] forward_reg = 0;
reg [CONFIG_WORDS*32-1:0] backward_reg = 0;
// Values of the general registers, in groups. All groups are 0 except the group of the address.
reg [31:0] general_0_reg = 0;
reg [31:0] general_1_reg = 0;
reg [31:0] general_2_reg = 0;
reg [31:0] general_3_reg = 0;
reg [31:0] general_4_reg = 0;
reg [31:0] config_value_reg = 0;
reg [31:0] forward_value_reg = 0;
reg [31:0] backward_value_reg = 0;
// Copies of the registers of the directions, from which these registers are read.
(* ram_style = "distributed" *)
reg [31:0] written_memory[63:0];
integer i;

// All registers are initially 0.
initial begin
    for (i = 0; i < 64; i = i + 1) begin
        written_memory[i] = 0;
    end
end

wire [3:0] block = addr_reg[11:8];
wire unused = &{1'b0, addr_reg[1:0]};
wire is_counter = addr_reg[7];
// The configuration cannot be changed while the core is enabled or active.
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

// Return the bits of a direction's word that are in use. All other bits stay 0.
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

reg [31:0] widths;
reg [31:0] sizes;
reg [31:0] control;
reg [31:0] status;
reg [31:0] features;

always @* begin
    widths = 0;
    widths[`NAGI_WIDTHS_DATA_WIDTH_BITS] = DATA_WIDTH[15:0];
    widths[`NAGI_WIDTHS_MEM_WIDTH_BITS] = MEM_WIDTH[15:0];
    sizes = 0;
    sizes[`NAGI_SIZES_ADDR_WIDTH_BITS] = ADDR_WIDTH[7:0];
    sizes[`NAGI_SIZES_QUEUE_DEPTH_WIDTH_BITS] = QUEUE_DEPTH_WIDTH[7:0];
    sizes[`NAGI_SIZES_MAX_FRAME_BITS] = MAX_FRAME[15:0];
    control = 0;
    control[`NAGI_CONTROL_ENABLE_SHIFT] = enable_reg;
    status = 0;
    status[`NAGI_STATUS_ACTIVE_SHIFT] = is_active;
    status[`NAGI_STATUS_IDLE_SHIFT] = is_idle;
    features = 0;
    features[`NAGI_FEATURES_POISSON_SHIFT] = POISSON != 0;
end

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
                state_reg <= STATE_CHOOSE;
            end else if (reg_rd_en) begin
                state_reg <= STATE_WAIT_1;
            end
        end
        STATE_CHOOSE: begin
            state_reg <= STATE_PREPARE;
            writes_general_reg <= block == GENERAL && !is_counter;
            may_write_reg <= may_write;
            writes_forward_reg <= block == FORWARD && !is_counter && may_write;
            writes_backward_reg <= block == BACKWARD && !is_counter && may_write;
        end
        STATE_PREPARE: state_reg <= STATE_WRITE;
        STATE_WRITE: begin
            state_reg <= writes_word_reg[COMMAND_WORD] && reg_wr_data[`NAGI_COMMAND_LATCH_SHIFT] ?
                STATE_LATCH : STATE_ACK;
            latch_reg <= writes_word_reg[COMMAND_WORD] && reg_wr_data[`NAGI_COMMAND_LATCH_SHIFT];
            clear_reg <= writes_word_reg[COMMAND_WORD] && reg_wr_data[`NAGI_COMMAND_CLEAR_SHIFT];
            if (writes_forward_reg || writes_backward_reg) begin
                written_memory[{writes_backward_reg, addr_reg[6:2]}] <= reg_wr_data & used_reg;
            end
        end
        STATE_WAIT_1: state_reg <= STATE_WAIT_2;
        STATE_WAIT_2: state_reg <= STATE_SELECT;
        STATE_SELECT: begin
            case (block)
                GENERAL: value_reg <= is_counter ? 32'd0 :
                    general_0_reg | general_1_reg | general_2_reg | general_3_reg | general_4_reg;
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
        // This state waits until the requester has seen the answer.
        STATE_PAUSE: state_reg <= STATE_IDLE;
        default: state_reg <= STATE_IDLE;
    endcase

    // The words that STATE_PREPARE selects are written in the next clock.
    writes_word_reg <= 0;
    writes_forward_word_reg <= 0;
    writes_backward_word_reg <= 0;
    if (state_reg == STATE_PREPARE) begin
        writes_word_reg <= is_word_reg & {32{writes_general_reg}} &
            ({32{may_write_reg}} | ALWAYS_WRITABLE);
        writes_forward_word_reg <= is_word_reg[CONFIG_WORDS-1:0] &
            {CONFIG_WORDS{writes_forward_reg}};
        writes_backward_word_reg <= is_word_reg[CONFIG_WORDS-1:0] &
            {CONFIG_WORDS{writes_backward_reg}};
    end
    if (writes_word_reg[CONTROL_WORD]) enable_reg <= reg_wr_data[`NAGI_CONTROL_ENABLE_SHIFT];
    if (writes_word_reg[LINK_WORD]) link_reg <= reg_wr_data;
    if (writes_word_reg[SEED_LO_WORD]) seed_reg[31:0] <= reg_wr_data;
    if (writes_word_reg[SEED_HI_WORD]) seed_reg[63:32] <= reg_wr_data;
    if (writes_word_reg[EPOCH_LO_WORD]) epoch_reg[31:0] <= reg_wr_data;
    if (writes_word_reg[EPOCH_HI_WORD]) epoch_reg[63:32] <= reg_wr_data;
    for (i = 0; i < CONFIG_WORDS; i = i + 1) begin
        if (writes_forward_word_reg[i]) forward_reg[i*32 +: 32] <= reg_wr_data & used(i[4:0]);
        if (writes_backward_word_reg[i]) backward_reg[i*32 +: 32] <= reg_wr_data & used(i[4:0]);
    end

    for (i = 0; i < 32; i = i + 1) begin
        is_word_reg[i] <= addr_reg[6:2] == i[4:0];
    end
    used_reg <= used(addr_reg[6:2]);
    general_0_reg <= ({32{is_word_reg[`NAGI_MAGIC / 4]}} & `NAGI_MAGIC_VALUE) |
        ({32{is_word_reg[`NAGI_MAP_VERSION / 4]}} & `NAGI_MAP_VERSION_VALUE) |
        ({32{is_word_reg[`NAGI_BUILD_ID / 4]}} & BUILD_ID) |
        ({32{is_word_reg[`NAGI_WIDTHS / 4]}} & widths);
    general_1_reg <= ({32{is_word_reg[`NAGI_SIZES / 4]}} & sizes) |
        ({32{is_word_reg[`NAGI_CLOCK_PERIOD_PS / 4]}} & TICK_PS) |
        ({32{is_word_reg[CONTROL_WORD]}} & control) |
        ({32{is_word_reg[`NAGI_STATUS / 4]}} & status);
    general_2_reg <= ({32{is_word_reg[LINK_WORD]}} & link_reg) |
        ({32{is_word_reg[SEED_LO_WORD]}} & seed_reg[31:0]) |
        ({32{is_word_reg[SEED_HI_WORD]}} & seed_reg[63:32]);
    general_3_reg <= ({32{is_word_reg[EPOCH_LO_WORD]}} & epoch_reg[31:0]) |
        ({32{is_word_reg[EPOCH_HI_WORD]}} & epoch_reg[63:32]);
    general_4_reg <= ({32{is_word_reg[`NAGI_TIME_NS_LO / 4]}} & time_reg[31:0]) |
        ({32{is_word_reg[`NAGI_TIME_NS_HI / 4]}} & time_reg[63:32]) |
        ({32{is_word_reg[`NAGI_FEATURES / 4]}} & features);

    forward_value_reg <= addr_reg[2] ? forward_counter[63:32] : forward_counter[31:0];
    backward_value_reg <= addr_reg[2] ? backward_counter[63:32] : backward_counter[31:0];
    config_value_reg <= written_memory[{addr_reg[9], addr_reg[6:2]}];

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
