// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * Decides on losses of one direction. A question gives the transmission [from, to) of a packet. The
 * answer is 1 if the packet is lost. There is one question at a time.
 *
 * Bernoulli and Gilbert-Elliott losses depend on the index of the packet. With Poisson losses, a
 * packet is lost if an event falls into its transmission. The next value is drawn ahead. The draw
 * of an outcome takes about 36 clocks, and the draw of an interval between events about 450 clocks.
 * The Poisson process follows `bound` also without questions.
 */
module nagi_loss #
(
    // 0: the module has no Poisson losses.
    parameter POISSON = 1
)
(
    input  wire         clk,
    input  wire         rst,

    // Configuration, as in registers.yaml. It is fixed while rst is 0.
    input  wire [1:0]   kind,
    input  wire [63:0]  seed,
    input  wire [31:0]  link,
    input  wire         direction,
    input  wire [63:0]  loss_in_good,
    input  wire [63:0]  loss_in_bad,
    input  wire [63:0]  good_to_bad,
    input  wire [63:0]  bad_to_good,
    input  wire [3:0]   certain,
    input  wire [63:0]  poisson_mean_ps,

    // In all later questions, the transmission starts at `bound` or later.
    input  wire [63:0]  bound,
    input  wire         bound_valid,

    // A question stays until it is answered.
    input  wire         ask,
    input  wire [63:0]  from,
    input  wire [63:0]  to,
    output wire         answered,
    output wire         lost,

    // The state does not change until `bound` moves or a question comes.
    output wire         idle
);

localparam [1:0]
    KIND_NONE = 2'd0,
    KIND_GILBERT_ELLIOTT = 2'd2,
    KIND_POISSON = 2'd3;

localparam [15:0]
    PURPOSE_LOSS = 16'd0,
    PURPOSE_LOSS_STATE = 16'd1;

localparam [2:0]
    DRAW_START = 3'd0,
    DRAW_PHILOX = 3'd1,
    DRAW_COMPARE = 3'd2,
    DRAW_LOGARITHM = 3'd3,
    DRAW_SCALE = 3'd4,
    DRAW_DIVIDE = 3'd5,
    DRAW_VALID = 3'd6,
    DRAW_DECIDE = 3'd7;

localparam [2:0]
    EVENT_ADVANCE = 3'd0,
    EVENT_COMPARE = 3'd1,
    EVENT_DECIDE = 3'd2,
    EVENT_ANSWER = 3'd3,
    EVENT_POINT = 3'd4;

localparam [9:0] PS_PER_NS = 10'd1000;
localparam PS_WIDTH = 70;

// Values derived from the configuration.
reg is_poisson_reg = 1'b0;
reg has_states_reg = 1'b0;
reg is_none_reg = 1'b1;

wire is_poisson = POISSON != 0 && is_poisson_reg;
wire has_states = has_states_reg;

reg stands_reg = 1'b1;  // reset of all draws; one clock late
// Values that are drawn ahead.
reg [2:0] draw_state_reg = DRAW_START;
reg [63:0] index_reg = 0;
reg is_bad_reg = 1'b0;
reg start_philox_reg = 1'b0;
reg start_scale_reg = 1'b0;
reg scales_reg = 1'b0;        // DRAW_SCALE uses the multiplier
reg start_divide_reg = 1'b0;
reg lost_reg = 1'b0;
reg changes_reg = 1'b0;
reg below_loss_reg = 1'b0;
reg below_change_reg = 1'b0;
// Thresholds of the state in which the draws are made. The state is known long before the draws.
reg [63:0] loss_threshold_reg = 0;
reg [63:0] change_threshold_reg = 0;
reg is_loss_certain_reg = 1'b0;
reg is_change_certain_reg = 1'b0;

wire philox_busy;
wire drawn;
wire [63:0] draw;
wire [63:0] change_draw;
wire [31:0] factor;
wire [31:0] factor_0;
wire [31:0] factor_1;
wire [31:0] wide_a;
wire [31:0] wide_b;
wire [63:0] product_0;
wire [63:0] product_1;
wire logarithm_done;
wire [45:0] logarithm;
wire multiply;
wire [63:0] multiply_a;
wire [63:0] multiply_b;
wire multiplied;
wire [127:0] product;
wire divided;
wire [PS_WIDTH-1:0] interval;
wire [9:0] remainder;
wire is_drawn = draw_state_reg == DRAW_VALID;
wire unused = &{1'b0, remainder, interval[PS_WIDTH-1:64], product};

// The next event of the Poisson process.
reg [2:0] event_state_reg = EVENT_ADVANCE;
reg [63:0] event_reg = 0;
reg [63:0] point_reg = 0;      // instant that event_reg is compared with
reg is_point_valid_reg = 1'b0;
reg is_question_reg = 1'b0;
reg is_before_reg = 1'b0;
reg is_inside_reg = 1'b0;
reg settled_reg = 1'b0;

wire advances = event_state_reg == EVENT_ADVANCE && is_drawn;
// The question stays for one clock after its answer.
reg answered_reg = 1'b0;
reg answer_reg = 1'b0;
wire asks = ask && !answered_reg;
wire index_answers = asks && !is_poisson && is_drawn;

assign answered = answered_reg;
assign lost = answer_reg;
assign idle = is_none_reg || (is_drawn && !ask && (!is_poisson || settled_reg));

nagi_multiplier multiplier_0_inst (
    .clk(clk),
    .a(philox_busy ? factor : wide_a),
    .b(philox_busy ? factor_0 : wide_b),
    .product(product_0)
);

nagi_multiplier multiplier_1_inst (
    .clk(clk),
    .a(factor),
    .b(factor_1),
    .product(product_1)
);

nagi_philox philox_inst (
    .clk(clk),
    .rst(stands_reg),
    .start(start_philox_reg),
    .index(index_reg),
    .link(link),
    .part({15'd0, direction}),
    .purpose_0(PURPOSE_LOSS),
    .purpose_1(PURPOSE_LOSS_STATE),
    .seed(seed),
    .busy(philox_busy),
    .done(drawn),
    .draw_0(draw),
    .draw_1(change_draw),
    .factor(factor),
    .factor_0(factor_0),
    .factor_1(factor_1),
    .product_0(product_0),
    .product_1(product_1)
);

generate
    if (POISSON) begin : poisson
        nagi_wide_multiplier wide_multiplier_inst (
            .clk(clk),
            .rst(stands_reg),
            .start(start_scale_reg || multiply),
            .a(scales_reg ? {18'd0, logarithm} : multiply_a),
            .b(scales_reg ? poisson_mean_ps : multiply_b),
            .done(multiplied),
            .product(product),
            .factor_a(wide_a),
            .factor_b(wide_b),
            .partial(product_0)
        );

        nagi_exponential exponential_inst (
            .clk(clk),
            .rst(stands_reg),
            .start(drawn && is_poisson),
            .draw(draw),
            .done(logarithm_done),
            .value(logarithm),
            .multiply(multiply),
            .multiply_a(multiply_a),
            .multiply_b(multiply_b),
            .multiplied(multiplied),
            .product(product)
        );

        // Rounds the interval to whole nanoseconds.
        nagi_divider #(.DIVIDEND_WIDTH(PS_WIDTH), .DIVISOR_WIDTH(10), .BITS(2)) divider_inst (
            .clk(clk),
            .rst(stands_reg),
            .start(start_divide_reg),
            .dividend(product[PS_WIDTH+39:40] + 70'd500),
            .divisor(PS_PER_NS),
            .done(divided),
            .quotient(interval),
            .remainder(remainder)
        );
    end else begin : poisson
        assign logarithm_done = 1'b0;
        assign logarithm = 0;
        assign multiply = 1'b0;
        assign multiply_a = 0;
        assign multiply_b = 0;
        assign multiplied = 1'b0;
        assign product = 0;
        assign wide_a = 0;
        assign wide_b = 0;
        assign divided = 1'b0;
        assign interval = 0;
        assign remainder = 0;
        wire unused_too = &{1'b0, logarithm_done, logarithm, multiply, multiply_a, multiply_b,
            multiplied, divided, poisson_mean_ps, from, to, bound, bound_valid, start_scale_reg,
            start_divide_reg, scales_reg};
    end
endgenerate

always @(posedge clk) begin
    is_poisson_reg <= kind == KIND_POISSON;
    has_states_reg <= kind == KIND_GILBERT_ELLIOTT;
    is_none_reg <= kind == KIND_NONE;
    stands_reg <= rst || is_none_reg;
    answered_reg <= index_answers || (is_poisson && event_state_reg == EVENT_ANSWER);
    answer_reg <= is_poisson ? is_inside_reg : lost_reg;
    start_philox_reg <= 1'b0;
    start_scale_reg <= 1'b0;
    start_divide_reg <= 1'b0;
    loss_threshold_reg <= is_bad_reg ? loss_in_bad : loss_in_good;
    change_threshold_reg <= is_bad_reg ? bad_to_good : good_to_bad;
    is_loss_certain_reg <= is_bad_reg ? certain[1] : certain[0];
    is_change_certain_reg <= is_bad_reg ? certain[3] : certain[2];
    case (draw_state_reg)
        DRAW_START: begin
            start_philox_reg <= 1'b1;
            draw_state_reg <= DRAW_PHILOX;
        end
        DRAW_PHILOX: begin
            if (drawn) begin
                index_reg <= index_reg + 1'b1;
                draw_state_reg <= is_poisson ? DRAW_LOGARITHM : DRAW_COMPARE;
            end
        end
        DRAW_COMPARE: begin
            below_loss_reg <= draw < loss_threshold_reg;
            below_change_reg <= change_draw < change_threshold_reg;
            draw_state_reg <= DRAW_DECIDE;
        end
        DRAW_DECIDE: begin
            lost_reg <= is_loss_certain_reg || below_loss_reg;
            changes_reg <= has_states && (is_change_certain_reg || below_change_reg);
            draw_state_reg <= DRAW_VALID;
        end
        DRAW_LOGARITHM: begin
            if (logarithm_done) begin
                start_scale_reg <= 1'b1;
                scales_reg <= 1'b1;
                draw_state_reg <= DRAW_SCALE;
            end
        end
        DRAW_SCALE: begin
            if (multiplied) begin
                start_divide_reg <= 1'b1;
                scales_reg <= 1'b0;
                draw_state_reg <= DRAW_DIVIDE;
            end
        end
        DRAW_DIVIDE: begin
            if (divided) begin
                draw_state_reg <= DRAW_VALID;
            end
        end
        DRAW_VALID: begin
            if (index_answers) begin
                is_bad_reg <= is_bad_reg ^ changes_reg;
            end
            if (index_answers || (is_poisson && advances)) begin
                draw_state_reg <= DRAW_START;
            end
        end
        default: draw_state_reg <= DRAW_START;
    endcase

    case (event_state_reg)
        // The first event is one interval after the epoch.
        EVENT_ADVANCE: begin
            settled_reg <= 1'b0;
            if (is_drawn && is_poisson) begin
                event_reg <= POISSON != 0 ? event_reg + interval[63:0] : 64'd0;
                event_state_reg <= EVENT_POINT;
            end
        end
        EVENT_POINT: begin
            is_question_reg <= asks;
            point_reg <= asks ? from : bound;
            is_point_valid_reg <= asks || bound_valid;
            event_state_reg <= EVENT_COMPARE;
        end
        EVENT_COMPARE: begin
            is_before_reg <= is_point_valid_reg && event_reg < point_reg;
            is_inside_reg <= event_reg < to;
            event_state_reg <= EVENT_DECIDE;
        end
        EVENT_DECIDE: begin
            settled_reg <= !is_before_reg && !is_question_reg && is_point_valid_reg;
            event_state_reg <= is_before_reg ? EVENT_ADVANCE :
                is_question_reg ? EVENT_ANSWER : EVENT_POINT;
        end
        EVENT_ANSWER: event_state_reg <= EVENT_POINT;
        default: event_state_reg <= EVENT_ADVANCE;
    endcase

    if (stands_reg) begin
        draw_state_reg <= DRAW_START;
        index_reg <= 0;
        is_bad_reg <= 1'b0;
        start_philox_reg <= 1'b0;
        start_scale_reg <= 1'b0;
        scales_reg <= 1'b0;
        start_divide_reg <= 1'b0;
        event_state_reg <= EVENT_ADVANCE;
        event_reg <= 0;
        settled_reg <= 1'b0;
        answered_reg <= 1'b0;
    end
end

endmodule

`resetall
