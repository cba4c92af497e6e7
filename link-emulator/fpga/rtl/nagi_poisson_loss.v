// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * Events of a Poisson process in time, and whether one falls into [start, end). Intervals are drawn
 * ahead. The process follows `bound` by itself: no transmission that is asked about later starts
 * before that. An interval takes some 550 clocks.
 */
module nagi_poisson_loss
(
    input  wire         clk,
    input  wire         rst,

    input  wire [63:0]  seed,
    input  wire [31:0]  link,
    input  wire         direction,
    input  wire [63:0]  mean_ps,

    input  wire [63:0]  bound,

    // A question: valid until it is answered.
    input  wire [63:0]  from,
    input  wire [63:0]  to,
    input  wire         ask,
    output wire         lost,
    output wire         lost_valid,

    // Nothing happens until the bound moves or a question comes.
    output wire         idle
);

localparam [2:0]
    DRAW_START = 3'd0,
    DRAW_PHILOX = 3'd1,
    DRAW_EXPONENTIAL = 3'd2,
    DRAW_SCALE = 3'd3,
    DRAW_ROUND = 3'd4,
    DRAW_DIVIDE = 3'd5,
    DRAW_VALID = 3'd6;

localparam [2:0]
    STATE_FIRST = 3'd0,
    STATE_LOAD = 3'd1,
    STATE_COMPARE = 3'd2,
    STATE_DECIDE = 3'd3,
    STATE_ANSWER = 3'd4,
    STATE_ADVANCE = 3'd5;

localparam [9:0] PS_PER_NS = 10'd1000;
localparam PS_WIDTH = 70;

reg [2:0] draw_state_reg = DRAW_START;
reg [63:0] index_reg = 0;
reg start_draw_reg = 1'b0;
reg start_scale_reg = 1'b0;
reg start_divide_reg = 1'b0;
reg [PS_WIDTH-1:0] picoseconds_reg = 0;

reg [2:0] state_reg = STATE_FIRST;
reg [63:0] event_reg = 0;
reg is_question_reg = 1'b0;
reg [63:0] low_reg = 0;
reg [63:0] high_reg = 0;
reg is_before_reg = 1'b0;
reg is_inside_reg = 1'b0;
reg lost_reg = 1'b0;
reg settled_reg = 1'b0;

wire drawn;
wire [63:0] draw;
wire logarithm_done;
wire [45:0] logarithm;
wire scaled;
wire [127:0] product;
wire divided;
wire [PS_WIDTH-1:0] interval;
wire [9:0] remainder;
wire unused = &{1'b0, remainder, interval[PS_WIDTH-1:64], product[127:PS_WIDTH+40], product[39:0]};

assign lost = lost_reg;
assign lost_valid = state_reg == STATE_ANSWER;
assign idle = draw_state_reg == DRAW_VALID && settled_reg && !ask;

nagi_philox philox_inst (
    .clk(clk),
    .rst(rst),
    .start(start_draw_reg),
    .counter({15'd0, direction, 16'd0, link, index_reg}),
    .seed(seed),
    .done(drawn),
    .draw(draw)
);

nagi_exponential exponential_inst (
    .clk(clk),
    .rst(rst),
    .start(drawn),
    .draw(draw),
    .done(logarithm_done),
    .value(logarithm)
);

nagi_wide_multiplier scale_inst (
    .clk(clk),
    .rst(rst),
    .start(start_scale_reg),
    .a({18'd0, logarithm}),
    .b(mean_ps),
    .done(scaled),
    .product(product)
);

nagi_divider #(.DIVIDEND_WIDTH(PS_WIDTH), .DIVISOR_WIDTH(10)) divider_inst (
    .clk(clk),
    .rst(rst),
    .start(start_divide_reg),
    .dividend(picoseconds_reg),
    .divisor(PS_PER_NS),
    .done(divided),
    .quotient(interval),
    .remainder(remainder)
);

// The next interval.
always @(posedge clk) begin
    start_draw_reg <= 1'b0;
    start_scale_reg <= 1'b0;
    start_divide_reg <= 1'b0;
    case (draw_state_reg)
        DRAW_START: begin
            start_draw_reg <= 1'b1;
            draw_state_reg <= DRAW_PHILOX;
        end
        DRAW_PHILOX: begin
            if (drawn) begin
                index_reg <= index_reg + 1'b1;
                draw_state_reg <= DRAW_EXPONENTIAL;
            end
        end
        DRAW_EXPONENTIAL: begin
            if (logarithm_done) begin
                start_scale_reg <= 1'b1;
                draw_state_reg <= DRAW_SCALE;
            end
        end
        DRAW_SCALE: begin
            if (scaled) begin
                picoseconds_reg <= product[PS_WIDTH+39:40];
                draw_state_reg <= DRAW_ROUND;
            end
        end
        DRAW_ROUND: begin
            picoseconds_reg <= picoseconds_reg + 70'd500;
            start_divide_reg <= 1'b1;
            draw_state_reg <= DRAW_DIVIDE;
        end
        DRAW_DIVIDE: begin
            if (divided) begin
                draw_state_reg <= DRAW_VALID;
            end
        end
        DRAW_VALID: begin
            if (state_reg == STATE_ADVANCE) begin
                draw_state_reg <= DRAW_START;
            end
        end
        default: draw_state_reg <= DRAW_START;
    endcase
    if (rst) begin
        draw_state_reg <= DRAW_START;
        index_reg <= 0;
        start_draw_reg <= 1'b0;
        start_scale_reg <= 1'b0;
        start_divide_reg <= 1'b0;
    end
end

// The next event.
always @(posedge clk) begin
    case (state_reg)
        // The first event lies an interval after the epoch.
        STATE_FIRST: state_reg <= STATE_ADVANCE;
        STATE_LOAD: begin
            is_question_reg <= ask;
            low_reg <= ask ? from : bound;
            high_reg <= to;
            state_reg <= STATE_COMPARE;
        end
        STATE_COMPARE: begin
            is_before_reg <= event_reg < low_reg;
            is_inside_reg <= event_reg < high_reg;
            state_reg <= STATE_DECIDE;
        end
        STATE_DECIDE: begin
            settled_reg <= !is_before_reg && !is_question_reg;
            lost_reg <= is_inside_reg;
            state_reg <= is_before_reg ? STATE_ADVANCE : is_question_reg ? STATE_ANSWER : STATE_LOAD;
        end
        STATE_ANSWER: state_reg <= STATE_LOAD;
        STATE_ADVANCE: begin
            settled_reg <= 1'b0;
            if (draw_state_reg == DRAW_VALID) begin
                event_reg <= event_reg + interval[63:0];
                state_reg <= STATE_LOAD;
            end
        end
        default: state_reg <= STATE_FIRST;
    endcase
    if (rst) begin
        state_reg <= STATE_FIRST;
        event_reg <= 0;
        settled_reg <= 1'b0;
    end
end

endmodule

`resetall
