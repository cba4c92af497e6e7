// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * Losses decided by the index of a packet: Bernoulli, and with `has_states` Gilbert-Elliott. An
 * outcome is drawn ahead, so that it is there when it is asked for, unless packets follow each
 * other in less than a draw takes.
 */
module nagi_indexed_loss
(
    input  wire         clk,
    input  wire         rst,
    input  wire         has_states,

    input  wire [63:0]  seed,
    input  wire [31:0]  link,
    input  wire         direction,

    // Probabilities x 2^64, and which of them are 1.
    input  wire [63:0]  loss_in_good,
    input  wire [63:0]  loss_in_bad,
    input  wire [63:0]  good_to_bad,
    input  wire [63:0]  bad_to_good,
    input  wire         loss_in_good_certain,
    input  wire         loss_in_bad_certain,
    input  wire         good_to_bad_certain,
    input  wire         bad_to_good_certain,

    // Whether the next packet is lost. `next`: of the one after it.
    output wire         lost,
    output wire         lost_valid,
    input  wire         next
);

localparam [15:0]
    PURPOSE_LOSS = 16'd0,
    PURPOSE_LOSS_STATE = 16'd1;

localparam [1:0]
    STATE_START = 2'd0,
    STATE_DRAW = 2'd1,
    STATE_COMPARE = 2'd2,
    STATE_VALID = 2'd3;

reg [1:0] state_reg = STATE_START;
reg [63:0] index_reg = 0;
reg is_bad_reg = 1'b0;
reg start_reg = 1'b0;
reg loss_drawn_reg = 1'b0;
reg change_drawn_reg = 1'b0;
reg [63:0] loss_threshold_reg = 0;
reg [63:0] change_threshold_reg = 0;
reg loss_certain_reg = 1'b0;
reg change_certain_reg = 1'b0;
reg lost_reg = 1'b0;
reg changes_reg = 1'b0;

wire loss_done;
wire change_done;
wire [63:0] loss_draw;
wire [63:0] change_draw;

assign lost = lost_reg;
assign lost_valid = state_reg == STATE_VALID;

nagi_philox loss_philox_inst (
    .clk(clk),
    .rst(rst),
    .start(start_reg),
    .counter({15'd0, direction, PURPOSE_LOSS, link, index_reg}),
    .seed(seed),
    .done(loss_done),
    .draw(loss_draw)
);

nagi_philox change_philox_inst (
    .clk(clk),
    .rst(rst),
    .start(start_reg && has_states),
    .counter({15'd0, direction, PURPOSE_LOSS_STATE, link, index_reg}),
    .seed(seed),
    .done(change_done),
    .draw(change_draw)
);

always @(posedge clk) begin
    start_reg <= 1'b0;

    loss_threshold_reg <= is_bad_reg ? loss_in_bad : loss_in_good;
    loss_certain_reg <= is_bad_reg ? loss_in_bad_certain : loss_in_good_certain;
    change_threshold_reg <= is_bad_reg ? bad_to_good : good_to_bad;
    change_certain_reg <= is_bad_reg ? bad_to_good_certain : good_to_bad_certain;

    case (state_reg)
        STATE_START: begin
            start_reg <= 1'b1;
            loss_drawn_reg <= 1'b0;
            change_drawn_reg <= !has_states;
            state_reg <= STATE_DRAW;
        end
        STATE_DRAW: begin
            loss_drawn_reg <= loss_drawn_reg || loss_done;
            change_drawn_reg <= change_drawn_reg || change_done;
            if (loss_drawn_reg && change_drawn_reg) begin
                state_reg <= STATE_COMPARE;
            end
        end
        STATE_COMPARE: begin
            lost_reg <= loss_certain_reg || loss_draw < loss_threshold_reg;
            changes_reg <= has_states && (change_certain_reg || change_draw < change_threshold_reg);
            state_reg <= STATE_VALID;
        end
        STATE_VALID: begin
            if (next) begin
                index_reg <= index_reg + 1'b1;
                is_bad_reg <= is_bad_reg ^ changes_reg;
                state_reg <= STATE_START;
            end
        end
        default: state_reg <= STATE_START;
    endcase

    if (rst) begin
        state_reg <= STATE_START;
        index_reg <= 0;
        is_bad_reg <= 1'b0;
        start_reg <= 1'b0;
    end
end

endmodule

`resetall
