// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * The discrete-event model of one direction (link-emulator/model/direction.hpp): loss at ingress,
 * marking, drop-tail queue, rate server, loss at egress. The input is arrivals. For each arrival,
 * the model outputs a verdict. When the transmission of a packet starts, the model outputs the
 * instant at which the packet leaves. The model compares instants; it does not count clocks.
 *
 * Events at the same instant are handled in this order: ends of transmission, starts of
 * transmission, arrivals. An end is handled only when no earlier arrival can come any more.
 */
module nagi_link_model #
(
    // log2 of the maximum number of packets held at a time.
    parameter QUEUE_DEPTH_WIDTH = 10,
    // log2 of the words of packet memory, and bytes per word.
    parameter ADDR_WIDTH = 13,
    parameter WORD_BYTES = 8,
    parameter DIVIDER_BITS = 1,
    // 0: the model has no Poisson losses.
    parameter POISSON = 1,
    parameter CONFIG_WORDS = 20
)
(
    input  wire                          clk,
    input  wire                          rst,

    // Registers of the direction, in the order of their addresses; see registers.yaml. They are
    // fixed while rst is 0.
    input  wire [CONFIG_WORDS*32-1:0]    configuration,
    input  wire [63:0]                   seed,
    input  wire [31:0]                   link,
    input  wire                          direction,

    // The next arrival, which stays until its verdict is taken. `is_coming`: an arrival whose
    // instant is before the current instant waits, or may still come.
    input  wire [63:0]                   now_ns,
    input  wire [63:0]                   arrival_ns,
    input  wire [15:0]                   arrival_frame_bytes,
    input  wire [1:0]                    arrival_ecn,
    input  wire                          arrival_valid,
    output wire                          arrival_ready,
    input  wire                          is_coming,

    // The verdict on the arrival. verdict_fate has the values of packets.bin; 0 admits the packet.
    output wire                          verdict_valid,
    input  wire                          verdict_ready,
    output wire [3:0]                    verdict_fate,
    output wire                          verdict_marked,
    output wire [31:0]                   verdict_index,
    // The packet is admitted. The output is valid in the clock after the verdict was taken.
    output wire                          verdict_let_in,

    // The transmission of the next admitted packet starts. start_left_ns is the instant at which
    // the packet reaches the far end. For a lost packet, it is the end of the transmission.
    output wire                          start_valid,
    output wire [63:0]                   start_left_ns,
    output wire                          start_lost,

    // A packet has left packet memory and frees this number of words.
    input  wire                          free_valid,
    input  wire [15:0]                   free_words,

    // Pulses for the counters.
    output wire                          count_offered,
    output wire                          count_overflow,
    output wire                          count_memory_overflow,
    output wire                          count_loss,
    output wire                          count_marked,
    output wire                          count_transmitted,
    output wire [15:0]                   counted_bytes,        // size of the offered packet
    output wire [16:0]                   counted_framed,       // this size with overhead
    output wire [50:0]                   counted_transmitting,
    output wire [QUEUE_DEPTH_WIDTH:0]    waiting,
    output wire                          waiting_valid,

    // The end of the current transmission, or all ones if there is none.
    output wire [63:0]                   next_end_ns,
    // The state does not change until an arrival comes or the end of a transmission is due.
    output wire                          idle
);

`include "nagi_registers.vh"

localparam [1:0]
    LOSS_NONE = 2'd0,
    LOSS_POISSON = 2'd3;

localparam [3:0]
    FATE_DELIVERED = 4'd0,
    FATE_QUEUE_OVERFLOW = 4'd1,
    FATE_CHANNEL_LOSS = 4'd2;

localparam [15:0] ETHERNET_HEADER = 16'd14;

// Width of the time of a transmission.
localparam AIR_WIDTH = 51;

// The state is one-hot; these are its bits.
localparam
    SETTLE_1 = 0,
    SETTLE_2 = 1,
    IDLE = 2,
    LOOK = 3,
    COMPARE = 4,
    ASK = 5,
    QUEUE = 6,
    VERDICT = 7,
    GIVEN = 8,
    START = 9,
    WORK = 10,
    CARRY = 11,
    DIVIDE = 12,
    ADD = 13,
    LEAVE = 14,
    SCHEDULE = 15;

localparam [15:0]
    STATE_SETTLE_1 = 16'd1 << SETTLE_1,
    STATE_SETTLE_2 = 16'd1 << SETTLE_2,
    STATE_IDLE = 16'd1 << IDLE,
    STATE_LOOK = 16'd1 << LOOK,
    STATE_COMPARE = 16'd1 << COMPARE,
    STATE_ASK = 16'd1 << ASK,
    STATE_QUEUE = 16'd1 << QUEUE,
    STATE_VERDICT = 16'd1 << VERDICT,
    STATE_GIVEN = 16'd1 << GIVEN,
    STATE_START = 16'd1 << START,
    STATE_WORK = 16'd1 << WORK,
    STATE_CARRY = 16'd1 << CARRY,
    STATE_DIVIDE = 16'd1 << DIVIDE,
    STATE_ADD = 16'd1 << ADD,
    STATE_LEAVE = 16'd1 << LEAVE,
    STATE_SCHEDULE = 16'd1 << SCHEDULE;

// Fields of the configuration registers.
wire [39:0] rate_bps = configuration[`NAGI_DIRECTION_RATE_BPS_LO*8 +: 40];
wire [31:0] mode = configuration[`NAGI_DIRECTION_MODE*8 +: 32];
wire [15:0] overhead_bytes = configuration[`NAGI_DIRECTION_OVERHEAD_BYTES*8 +: 16];
wire [40:0] queue_limit = configuration[`NAGI_DIRECTION_QUEUE_LIMIT_LO*8 +: 41];
wire [40:0] mark_threshold = configuration[`NAGI_DIRECTION_MARK_THRESHOLD_LO*8 +: 41];
wire [41:0] delay_ns = configuration[`NAGI_DIRECTION_DELAY_NS_LO*8 +: 42];
wire [63:0] loss_in_good = configuration[`NAGI_DIRECTION_LOSS_IN_GOOD_LO*8 +: 64];
wire [63:0] loss_in_bad = configuration[`NAGI_DIRECTION_LOSS_IN_BAD_LO*8 +: 64];
wire [63:0] good_to_bad = configuration[`NAGI_DIRECTION_GOOD_TO_BAD_LO*8 +: 64];
wire [63:0] bad_to_good = configuration[`NAGI_DIRECTION_BAD_TO_GOOD_LO*8 +: 64];
wire [63:0] poisson_mean_ps = configuration[`NAGI_DIRECTION_POISSON_MEAN_PS_LO*8 +: 64];

// Fields of the mode.
wire unlimited_rate = mode[`NAGI_MODE_UNLIMITED_RATE_SHIFT];
wire counts_transmission = mode[`NAGI_MODE_COUNTS_TRANSMISSION_SHIFT];
wire [1:0] queue_limit_kind = mode[`NAGI_MODE_QUEUE_LIMIT_BITS];
wire [1:0] mark_kind = mode[`NAGI_MODE_MARK_BITS];
wire [1:0] loss_kind = mode[`NAGI_MODE_LOSS_BITS];
wire loss_at_ingress = mode[`NAGI_MODE_LOSS_AT_INGRESS_SHIFT];
wire [3:0] certain = mode[`NAGI_MODE_LOSS_IN_GOOD_CERTAIN_SHIFT +: 4];

reg [15:0] state_reg = STATE_SETTLE_1;
// For losses at ingress, the states START to ADD estimate how long the transmission would take.
reg is_estimate_reg = 1'b0;

// The packet that arrives.
reg [63:0] at_reg = 0;
reg [15:0] bytes_reg = 0;
reg [15:0] words_reg = 0;
reg may_be_marked_reg = 1'b0;
reg [31:0] index_reg = 0;
reg [31:0] next_index_reg = 0;
reg marked_reg = 1'b0;
reg [3:0] fate_reg = FATE_DELIVERED;
reg is_memory_overflow_reg = 1'b0;
reg is_let_in_reg = 1'b0;     // in STATE_GIVEN

// Values derived from the configuration.
reg asks_at_ingress_reg = 1'b0;
reg asks_at_egress_reg = 1'b0;

// The rate server.
reg is_serving_reg = 1'b0;
reg [15:0] served_bytes_reg = 0;
reg [16:0] served_framed_reg = 0;
reg [63:0] served_end_reg = 0;
reg [AIR_WIDTH-1:0] served_air_reg = 0;
reg served_lost_reg = 1'b0;
reg at_once_reg = 1'b0;

// The transmission that starts or is estimated.
reg [15:0] size_reg = 0;
reg [63:0] end_reg = 0;
reg [63:0] left_reg = 0;
reg lost_reg = 1'b0;

// Comparisons, which are one clock late.
reg arrival_seen_reg = 1'b0;
reg end_is_due_reg = 1'b0;          // end of the current transmission
reg end_before_arrival_reg = 1'b0;  // the end is not later than the arrival
reg is_coming_reg = 1'b0;

// The event that is handled next, once state_reg is STATE_IDLE.
reg end_first_reg = 1'b0;
reg arrival_first_reg = 1'b0;

reg count_offered_reg = 1'b0;
reg count_overflow_reg = 1'b0;
reg count_memory_overflow_reg = 1'b0;
reg count_loss_reg = 1'b0;
reg count_marked_reg = 1'b0;
reg count_transmitted_reg = 1'b0;

wire [15:0] head_bytes;
wire has_room;
wire over_threshold;
wire [QUEUE_DEPTH_WIDTH:0] held;
wire has_space;

wire [16:0] framed_bytes;
wire multiplied;
wire divided;
wire [AIR_WIDTH-1:0] air_ns;

// Losses of the configured kind, at the configured point.
wire has_loss = loss_kind != LOSS_NONE;
wire is_poisson = loss_kind == LOSS_POISSON;
wire answered;
wire answer;
wire loss_idle;
wire asks = state_reg[ASK];

// An end may be handled if no earlier arrival can come.
wire end_first = is_serving_reg &&
    (arrival_seen_reg ? end_before_arrival_reg : end_is_due_reg && !is_coming_reg);
wire arrival_first = arrival_seen_reg && !(is_serving_reg && end_before_arrival_reg);
wire counts_served = is_serving_reg && counts_transmission;

wire [31:0] arrival_words = ({16'd0, arrival_frame_bytes} + WORD_BYTES - 1) / WORD_BYTES;
// Only the formal properties use `held`.
wire unused = &{1'b0, configuration, mode, arrival_words, held};
wire takes_arrival = state_reg[IDLE] && !end_first_reg && arrival_first_reg;
wire is_let_in = fate_reg == FATE_DELIVERED;
wire let_in = state_reg[GIVEN] && is_let_in_reg;
wire is_given = state_reg[GIVEN];
wire starts = state_reg[START] && !is_estimate_reg;
wire ends = state_reg[IDLE] && end_first_reg;
// In STATE_ADD, end_reg is the start of the transmission. In STATE_LEAVE, end_reg is its end.
wire [63:0] end_or_left = end_reg + {13'd0, state_reg[ADD] ? air_ns :
    lost_reg ? {AIR_WIDTH{1'b0}} : {{AIR_WIDTH-42{1'b0}}, delay_ns}};
wire loses_on_arrival = asks && is_estimate_reg && answered && answer;

assign arrival_ready = is_given;
assign verdict_valid = state_reg[VERDICT];
assign verdict_fate = fate_reg;
assign verdict_marked = marked_reg;
assign verdict_index = index_reg;
assign verdict_let_in = let_in;
assign start_valid = state_reg[SCHEDULE];
assign start_left_ns = left_reg;
assign start_lost = lost_reg;
assign count_offered = count_offered_reg;
assign count_overflow = count_overflow_reg;
assign count_memory_overflow = count_memory_overflow_reg;
assign count_loss = count_loss_reg;
assign count_marked = count_marked_reg;
assign count_transmitted = count_transmitted_reg;
assign counted_bytes = bytes_reg;
assign counted_framed = served_framed_reg;
assign counted_transmitting = served_air_reg;
// A packet that starts at once does not wait.
assign waiting_valid = state_reg[SETTLE_1];
assign next_end_ns = is_serving_reg ? served_end_reg : {64{1'b1}};
assign idle = state_reg[IDLE] && !arrival_valid && !end_first && !end_first_reg &&
    loss_idle;

nagi_queue #(.QUEUE_DEPTH_WIDTH(QUEUE_DEPTH_WIDTH)) queue_inst (
    .clk(clk),
    .rst(rst),
    .limit_kind(queue_limit_kind),
    .limit(queue_limit),
    .mark_kind(mark_kind),
    .mark_threshold(mark_threshold),
    .let_in(let_in),
    .arriving_bytes(bytes_reg),
    .starts(starts),
    .starting_bytes(size_reg),
    .counts_served(counts_served),
    .served_bytes(served_bytes_reg),
    .waiting(waiting),
    .head_bytes(head_bytes),
    .has_room(has_room),
    .over_threshold(over_threshold)
);

nagi_memory_space #(
    .QUEUE_DEPTH_WIDTH(QUEUE_DEPTH_WIDTH),
    .ADDR_WIDTH(ADDR_WIDTH)
) space_inst (
    .clk(clk),
    .rst(rst),
    .let_in(let_in),
    .words(words_reg),
    .free_valid(free_valid),
    .free_words(free_words),
    .held(held),
    .has_space(has_space)
);

nagi_transmission_time #(.DIVIDER_BITS(DIVIDER_BITS)) time_inst (
    .clk(clk),
    .rst(rst),
    .rate_bps(rate_bps),
    .unlimited_rate(unlimited_rate),
    .overhead_bytes(overhead_bytes),
    .begins(state_reg[START]),
    .bytes(size_reg),
    .framed_bytes(framed_bytes),
    .multiplies(state_reg[WORK]),
    .multiplied(multiplied),
    .divides(state_reg[CARRY]),
    .adds_left_over(at_once_reg),
    .keeps_remainder(state_reg[DIVIDE] && !is_estimate_reg),
    .divided(divided),
    .air_ns(air_ns)
);

// Lower bound of the transmissions in all later questions to nagi_loss. At egress, a later
// transmission does not start before the end of the current one; at ingress, not before the current
// instant.
nagi_loss #(.POISSON(POISSON)) loss_inst (
    .clk(clk),
    .rst(rst),
    .kind(loss_kind),
    .seed(seed),
    .link(link),
    .direction(direction),
    .loss_in_good(loss_in_good),
    .loss_in_bad(loss_in_bad),
    .good_to_bad(good_to_bad),
    .bad_to_good(bad_to_good),
    .certain(certain),
    .poisson_mean_ps(poisson_mean_ps),
    .bound(is_serving_reg && !loss_at_ingress ? served_end_reg : now_ns),
    .bound_valid(state_reg[IDLE] && !is_coming),
    .ask(asks),
    .from(at_reg),
    .to(end_reg),
    .answered(answered),
    .lost(answer),
    .idle(loss_idle)
);

always @(posedge clk) begin
    count_offered_reg <= takes_arrival;
    count_overflow_reg <= is_given && fate_reg == FATE_QUEUE_OVERFLOW && !is_memory_overflow_reg;
    count_memory_overflow_reg <= is_given && is_memory_overflow_reg;
    count_loss_reg <= loses_on_arrival || (ends && served_lost_reg);
    count_marked_reg <= let_in && marked_reg;
    count_transmitted_reg <= ends;

    asks_at_ingress_reg <= has_loss && loss_at_ingress;
    asks_at_egress_reg <= has_loss && !loss_at_ingress;
    is_let_in_reg <= is_let_in;

    end_is_due_reg <= (served_end_reg <= now_ns);
    end_before_arrival_reg <= (served_end_reg <= arrival_ns);
    arrival_seen_reg <= arrival_valid && !is_given;
    is_coming_reg <= is_coming;
    end_first_reg <= end_first;
    arrival_first_reg <= arrival_first;

    (* parallel_case *)
    case (1'b1)
        // These states wait until the comparisons have followed a change.
        state_reg[SETTLE_1]: state_reg <= STATE_SETTLE_2;
        state_reg[SETTLE_2]: state_reg <= STATE_IDLE;
        state_reg[IDLE]: begin
            is_estimate_reg <= 1'b0;
            marked_reg <= 1'b0;
            fate_reg <= FATE_DELIVERED;
            is_memory_overflow_reg <= 1'b0;
            // Values of the next event, if there is one.
            at_reg <= end_first_reg ? served_end_reg : arrival_ns;
            size_reg <= head_bytes;
            at_once_reg <= 1'b1;
            bytes_reg <= arrival_frame_bytes - ETHERNET_HEADER;
            words_reg <= arrival_words[15:0];
            may_be_marked_reg <= arrival_ecn == 2'd1 || arrival_ecn == 2'd2;
            index_reg <= next_index_reg;
            if (ends) begin
                is_serving_reg <= 1'b0;
                state_reg <= waiting != 0 ? STATE_START : STATE_SETTLE_1;
            end else if (takes_arrival) begin
                next_index_reg <= next_index_reg + 1'b1;
                state_reg <= STATE_LOOK;
            end
        end
        state_reg[LOOK]: begin
            size_reg <= bytes_reg;
            at_once_reg <= 1'b0;
            if (asks_at_ingress_reg) begin
                is_estimate_reg <= 1'b1;
                state_reg <= is_poisson ? STATE_START : STATE_ASK;
            end else begin
                state_reg <= STATE_COMPARE;
            end
        end
        state_reg[COMPARE]: state_reg <= STATE_QUEUE;
        state_reg[ASK]: begin
            if (answered) begin
                lost_reg <= answer;
                if (!is_estimate_reg) begin
                    state_reg <= STATE_LEAVE;
                end else if (answer) begin
                    fate_reg <= FATE_CHANNEL_LOSS;
                    state_reg <= STATE_VERDICT;
                end else begin
                    state_reg <= STATE_QUEUE;
                end
            end
        end
        state_reg[QUEUE]: begin
            is_estimate_reg <= 1'b0;
            marked_reg <= over_threshold && may_be_marked_reg;
            if ((is_serving_reg && !has_room) || !has_space) begin
                fate_reg <= FATE_QUEUE_OVERFLOW;
                is_memory_overflow_reg <= !is_serving_reg || has_room;
            end
            state_reg <= STATE_VERDICT;
        end
        state_reg[VERDICT]: begin
            if (verdict_ready) begin
                state_reg <= STATE_GIVEN;
            end
        end
        state_reg[GIVEN]: state_reg <= is_let_in_reg && !is_serving_reg ? STATE_START : STATE_SETTLE_1;
        state_reg[START]: begin
            lost_reg <= 1'b0;
            end_reg <= at_reg;
            state_reg <= STATE_WORK;
        end
        state_reg[WORK]: begin
            if (multiplied || unlimited_rate) begin
                state_reg <= STATE_CARRY;
            end
        end
        state_reg[CARRY]: state_reg <= unlimited_rate ? STATE_ADD : STATE_DIVIDE;
        state_reg[DIVIDE]: begin
            if (divided) begin
                state_reg <= STATE_ADD;
            end
        end
        state_reg[ADD]: begin
            end_reg <= end_or_left;
            state_reg <= is_estimate_reg || asks_at_egress_reg ? STATE_ASK :
                STATE_LEAVE;
        end
        state_reg[LEAVE]: begin
            left_reg <= end_or_left;
            state_reg <= STATE_SCHEDULE;
        end
        state_reg[SCHEDULE]: begin
            is_serving_reg <= 1'b1;
            served_bytes_reg <= size_reg;
            served_framed_reg <= framed_bytes;
            served_end_reg <= end_reg;
            served_air_reg <= air_ns;
            served_lost_reg <= lost_reg;
            state_reg <= STATE_SETTLE_1;
        end
        default: state_reg <= STATE_SETTLE_1;
    endcase

    if (rst) begin
        state_reg <= STATE_SETTLE_1;
        next_index_reg <= 0;
        is_serving_reg <= 1'b0;
        arrival_seen_reg <= 1'b0;
        end_first_reg <= 1'b0;
        arrival_first_reg <= 1'b0;
        count_offered_reg <= 1'b0;
        count_overflow_reg <= 1'b0;
        count_memory_overflow_reg <= 1'b0;
        count_loss_reg <= 1'b0;
        count_marked_reg <= 1'b0;
        count_transmitted_reg <= 1'b0;
    end
end

`ifdef FORMAL
`include "nagi_link_model_properties.vh"
`endif

endmodule

`resetall
