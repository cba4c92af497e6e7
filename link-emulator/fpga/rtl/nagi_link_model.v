// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * The discrete-event model of one direction (link-emulator/model/direction.hpp): loss at ingress,
 * marking, drop-tail queue, rate server, loss at egress. The input is arrivals. For each arrival,
 * the model gives a verdict. When the transmission of a packet starts, the model gives the instant
 * at which the packet leaves. The model compares instants; it does not count clocks.
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
    parameter POISSON = 1
)
(
    input  wire                          clk,
    input  wire                          rst,

    // Configuration; see registers.yaml. It is fixed while rst is 0.
    input  wire                          direction,
    input  wire [63:0]                   seed,
    input  wire [31:0]                   link,
    input  wire [39:0]                   rate_bps,
    input  wire                          unlimited_rate,
    input  wire [15:0]                   overhead_bytes,
    input  wire                          counts_transmission,
    input  wire [1:0]                    queue_limit_kind,
    input  wire [40:0]                   queue_limit,
    input  wire [1:0]                    mark_kind,
    input  wire [40:0]                   mark_threshold,
    input  wire [41:0]                   delay_ns,
    input  wire [1:0]                    loss_kind,
    input  wire                          loss_at_ingress,
    input  wire [63:0]                   loss_in_good,
    input  wire [63:0]                   loss_in_bad,
    input  wire [63:0]                   good_to_bad,
    input  wire [63:0]                   bad_to_good,
    input  wire [3:0]                    certain,
    input  wire [63:0]                   poisson_mean_ps,

    // The next arrival, which stays until its verdict is taken. `is_coming`: there is an arrival
    // from before now, or one will come.
    input  wire [63:0]                   now_ns,
    input  wire [63:0]                   arrival_ns,
    input  wire [15:0]                   arrival_frame_bytes,
    input  wire [1:0]                    arrival_ecn,
    input  wire                          arrival_valid,
    output wire                          arrival_ready,
    input  wire                          is_coming,

    // The verdict on the arrival. verdict_fate is as in packets.bin; 0: the packet is admitted.
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
    output wire [16:0]                   counted_framed,       // with overhead
    output wire [50:0]                   counted_transmitting,
    output wire [QUEUE_DEPTH_WIDTH:0]    waiting,
    output wire                          waiting_valid,

    // The end of the current transmission, or all ones if there is none.
    output wire [63:0]                   next_end_ns,
    // Nothing happens until an arrival comes or an end is due.
    output wire                          idle
);

localparam [1:0]
    KIND_NONE = 2'd0,
    KIND_PACKETS = 2'd1,
    KIND_BYTES = 2'd2;

localparam [1:0]
    LOSS_NONE = 2'd0,
    LOSS_POISSON = 2'd3;

localparam [3:0]
    FATE_DELIVERED = 4'd0,
    FATE_QUEUE_OVERFLOW = 4'd1,
    FATE_CHANNEL_LOSS = 4'd2;

localparam [15:0] ETHERNET_HEADER = 16'd14;

// At a rate of R bit/s, the server does R units of work per nanosecond. A bit is 10^9 units and a
// byte 8 x 10^9, which is 1,953,125 x 2^12. Multipliers have 18 bits, so 1,953,125 is split into
// 7 x 2^18 + 118,117.
localparam [17:0] WORK_A_BYTE_LOW = 18'd118117;
localparam WORK_WIDTH = 51;
// Width of a number of words of packet memory.
localparam SPACE_WIDTH = ADDR_WIDTH < 16 ? 17 : ADDR_WIDTH + 1;
localparam [SPACE_WIDTH-1:0] SPACE = {{SPACE_WIDTH-1{1'b0}}, 1'b1} << ADDR_WIDTH;

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

reg [15:0] state_reg = STATE_SETTLE_1;
// The states START to ADD compute how long the packet would take, for the loss at ingress.
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
reg limits_packets_reg = 1'b0;
reg limits_bytes_reg = 1'b0;
reg asks_at_ingress_reg = 1'b0;
reg asks_at_egress_reg = 1'b0;
reg marks_reg = 1'b0;

// The queue.
reg [QUEUE_DEPTH_WIDTH:0] waiting_reg = 0;
reg [QUEUE_DEPTH_WIDTH+16:0] waiting_bytes_reg = 0;
reg [QUEUE_DEPTH_WIDTH+16:0] waiting_bytes_change_reg = 0;  // change in the previous clock
reg [15:0] served_waiting_bytes_reg = 0;  // size of the packet in transmission, if it counts
reg [QUEUE_DEPTH_WIDTH-1:0] write_ptr_reg = 0;
reg [QUEUE_DEPTH_WIDTH-1:0] read_ptr_reg = 0;
wire [15:0] head_bytes;
reg [15:0] head_bytes_reg = 0;
// Length of the queue including the packet in transmission, if it counts. bytes_with_packet_reg
// also includes the arriving packet.
reg [QUEUE_DEPTH_WIDTH:0] counted_waiting_reg = 0;
reg [QUEUE_DEPTH_WIDTH+16:0] counted_waiting_bytes_reg = 0;
reg [QUEUE_DEPTH_WIDTH+17:0] bytes_with_packet_reg = 0;

// Packets and words that are held, including packets on the way.
reg [QUEUE_DEPTH_WIDTH:0] held_reg = 0;
reg [SPACE_WIDTH-1:0] free_words_reg = SPACE;
reg [15:0] taken_words_reg = 0;  // words taken in the previous clock
reg [15:0] freed_words_reg = 0;
reg [SPACE_WIDTH-1:0] free_change_reg = 0;

// The rate server.
reg is_serving_reg = 1'b0;
reg [15:0] served_bytes_reg = 0;
reg [16:0] served_framed_reg = 0;
reg [63:0] served_end_reg = 0;
reg [WORK_WIDTH-1:0] served_air_reg = 0;
reg served_lost_reg = 1'b0;
reg at_once_reg = 1'b0;
reg [39:0] left_over_reg = 0;

// The transmission that starts or is estimated.
reg [15:0] size_reg = 0;
reg [16:0] framed_reg = 0;
reg [34:0] low_product_reg = 0;
reg [19:0] seven_reg = 0;     // 7 x framed_reg
reg [37:0] product_reg = 0;
reg has_factors_reg = 1'b0;   // low_product_reg and seven_reg belong to framed_reg
reg [WORK_WIDTH-1:0] work_reg = 0;
reg start_division_reg = 1'b0;
reg [WORK_WIDTH-1:0] air_reg = 0;
reg [63:0] end_reg = 0;
reg [63:0] left_reg = 0;
reg lost_reg = 1'b0;

// Comparisons, which are one clock late.
reg arrival_seen_reg = 1'b0;
reg end_is_due_reg = 1'b0;          // end of the current transmission
reg end_before_arrival_reg = 1'b0;  // before the arrival or at the same instant
reg has_room_for_packet_reg = 1'b0;
reg has_room_for_bytes_reg = 1'b0;
reg has_memory_reg = 1'b0;
reg [40:0] marked_waiting_reg = 0;  // length of the queue that marking compares
reg over_threshold_reg = 1'b0;
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

wire divided;
wire [WORK_WIDTH-1:0] quotient;
wire [39:0] remainder;

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
wire [QUEUE_DEPTH_WIDTH:0] counted_waiting = waiting_reg +
    {{QUEUE_DEPTH_WIDTH{1'b0}}, is_serving_reg && counts_transmission};
wire [QUEUE_DEPTH_WIDTH+16:0] counted_waiting_bytes = waiting_bytes_reg +
    {{QUEUE_DEPTH_WIDTH+1{1'b0}}, served_waiting_bytes_reg};
wire [40:0] wide_waiting = {{40-QUEUE_DEPTH_WIDTH{1'b0}}, waiting_reg};
wire [40:0] wide_waiting_bytes = {{24-QUEUE_DEPTH_WIDTH{1'b0}}, waiting_bytes_reg};
wire is_full = held_reg[QUEUE_DEPTH_WIDTH];

wire [31:0] arrival_words = ({16'd0, arrival_frame_bytes} + WORD_BYTES - 1) / WORD_BYTES;
wire unused = &{1'b0, arrival_words};
wire takes_arrival = state_reg[IDLE] && !end_first_reg && arrival_first_reg;
wire has_room = (!limits_packets_reg || has_room_for_packet_reg) &&
    (!limits_bytes_reg || has_room_for_bytes_reg);
wire is_let_in = fate_reg == FATE_DELIVERED;
wire let_in = state_reg[GIVEN] && is_let_in_reg;
wire is_given = state_reg[GIVEN];
wire starts = state_reg[START] && !is_estimate_reg;
// `let_in` and `starts` are never 1 in the same clock.
wire [QUEUE_DEPTH_WIDTH+16:0] waiting_bytes_change =
    {{QUEUE_DEPTH_WIDTH+1{1'b0}}, let_in ? bytes_reg : starts ? size_reg : 16'd0};
wire ends = state_reg[IDLE] && end_first_reg;
// In STATE_ADD, end_reg is the start of the transmission. In STATE_LEAVE, end_reg is its end.
wire [63:0] end_or_left = end_reg + {13'd0, state_reg[ADD] ? air_reg :
    lost_reg ? {WORK_WIDTH{1'b0}} : {{WORK_WIDTH-42{1'b0}}, delay_ns}};
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
assign waiting = waiting_reg;
// A packet that starts at once does not wait.
assign waiting_valid = state_reg[SETTLE_1];
assign next_end_ns = is_serving_reg ? served_end_reg : {64{1'b1}};
assign idle = state_reg[IDLE] && !arrival_valid && !end_first && !end_first_reg &&
    loss_idle;

nagi_ram #(.WIDTH(16), .ADDR_WIDTH(QUEUE_DEPTH_WIDTH)) waiting_inst (
    .clk(clk),
    .wr_en(let_in),
    .wr_addr(write_ptr_reg),
    .wr_data(bytes_reg),
    .rd_en(1'b1),
    .rd_addr(read_ptr_reg),
    .rd_data(head_bytes)
);

nagi_divider #(
    .DIVIDEND_WIDTH(WORK_WIDTH),
    .DIVISOR_WIDTH(40),
    .BITS(DIVIDER_BITS)
) divider_inst (
    .clk(clk),
    .rst(rst),
    .start(start_division_reg),
    .dividend(work_reg),
    .divisor(rate_bps),
    .done(divided),
    .quotient(quotient),
    .remainder(remainder)
);

// Bound of all later questions. At egress, a later transmission starts no earlier than the end of
// the current one; at ingress, no earlier than now.
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
    start_division_reg <= 1'b0;
    count_offered_reg <= takes_arrival;
    count_overflow_reg <= is_given && fate_reg == FATE_QUEUE_OVERFLOW && !is_memory_overflow_reg;
    count_memory_overflow_reg <= is_given && is_memory_overflow_reg;
    count_loss_reg <= loses_on_arrival || (ends && served_lost_reg);
    count_marked_reg <= let_in && marked_reg;
    count_transmitted_reg <= ends;

    limits_packets_reg <= queue_limit_kind == KIND_PACKETS;
    limits_bytes_reg <= queue_limit_kind == KIND_BYTES;
    asks_at_ingress_reg <= has_loss && loss_at_ingress;
    asks_at_egress_reg <= has_loss && !loss_at_ingress;
    marks_reg <= mark_kind != KIND_NONE;
    air_reg <= unlimited_rate ? {WORK_WIDTH{1'b0}} : quotient;
    is_let_in_reg <= is_let_in;
    served_waiting_bytes_reg <= is_serving_reg && counts_transmission ? served_bytes_reg : 16'd0;

    head_bytes_reg <= head_bytes;
    counted_waiting_reg <= counted_waiting;
    counted_waiting_bytes_reg <= counted_waiting_bytes;
    bytes_with_packet_reg <=
        {1'b0, counted_waiting_bytes_reg} + {{QUEUE_DEPTH_WIDTH+2{1'b0}}, bytes_reg};
    end_is_due_reg <= (served_end_reg <= now_ns);
    end_before_arrival_reg <= (served_end_reg <= arrival_ns);
    arrival_seen_reg <= arrival_valid && !is_given;
    is_coming_reg <= is_coming;
    end_first_reg <= end_first;
    arrival_first_reg <= arrival_first;
    has_memory_reg <= {{SPACE_WIDTH-16{1'b0}}, words_reg} <= free_words_reg && !is_full;
    marked_waiting_reg <= mark_kind == KIND_BYTES ? wide_waiting_bytes : wide_waiting;
    over_threshold_reg <= marks_reg && marked_waiting_reg > mark_threshold;
    has_room_for_packet_reg <= {{40-QUEUE_DEPTH_WIDTH{1'b0}}, counted_waiting_reg} < queue_limit;
    has_room_for_bytes_reg <= {{23-QUEUE_DEPTH_WIDTH{1'b0}}, bytes_with_packet_reg} <= queue_limit;

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
            size_reg <= head_bytes_reg;
            at_once_reg <= 1'b1;
            bytes_reg <= arrival_frame_bytes - ETHERNET_HEADER;
            words_reg <= arrival_words[15:0];
            may_be_marked_reg <= arrival_ecn == 2'd1 || arrival_ecn == 2'd2;
            index_reg <= next_index_reg;
            if (ends) begin
                is_serving_reg <= 1'b0;
                state_reg <= waiting_reg != 0 ? STATE_START : STATE_SETTLE_1;
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
            marked_reg <= over_threshold_reg && may_be_marked_reg;
            if ((is_serving_reg && !has_room) || !has_memory_reg) begin
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
            framed_reg <= {1'b0, size_reg} + {1'b0, overhead_bytes};
            lost_reg <= 1'b0;
            end_reg <= at_reg;
            has_factors_reg <= 1'b0;
            state_reg <= STATE_WORK;
        end
        state_reg[WORK]: begin
            // The product is computed in two steps. STATE_CARRY then adds the remainder of the last
            // division.
            low_product_reg <= framed_reg * WORK_A_BYTE_LOW;
            seven_reg <= {framed_reg, 3'd0} - {3'd0, framed_reg};
            product_reg <= {3'd0, low_product_reg} + {seven_reg, 18'd0};
            has_factors_reg <= 1'b1;
            if (has_factors_reg || unlimited_rate) begin
                state_reg <= STATE_CARRY;
            end
        end
        state_reg[CARRY]: begin
            work_reg <= {1'b0, product_reg, 12'd0} +
                {11'd0, at_once_reg ? left_over_reg : 40'd0};
            start_division_reg <= !unlimited_rate;
            state_reg <= unlimited_rate ? STATE_ADD : STATE_DIVIDE;
        end
        state_reg[DIVIDE]: begin
            if (divided) begin
                if (!is_estimate_reg) begin
                    left_over_reg <= remainder;
                end
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
            served_framed_reg <= framed_reg;
            served_end_reg <= end_reg;
            served_air_reg <= air_reg;
            served_lost_reg <= lost_reg;
            state_reg <= STATE_SETTLE_1;
        end
        default: state_reg <= STATE_SETTLE_1;
    endcase

    waiting_reg <= waiting_reg + {{QUEUE_DEPTH_WIDTH{1'b0}}, let_in} -
        {{QUEUE_DEPTH_WIDTH{1'b0}}, starts};
    waiting_bytes_change_reg <= starts ? {QUEUE_DEPTH_WIDTH+17{1'b0}} - waiting_bytes_change :
        waiting_bytes_change;
    waiting_bytes_reg <= waiting_bytes_reg + waiting_bytes_change_reg;
    if (let_in) begin
        write_ptr_reg <= write_ptr_reg + 1'b1;
    end
    if (starts) begin
        read_ptr_reg <= read_ptr_reg + 1'b1;
    end
    held_reg <= held_reg + {{QUEUE_DEPTH_WIDTH{1'b0}}, let_in} -
        {{QUEUE_DEPTH_WIDTH{1'b0}}, free_valid};
    // free_words_reg is three clocks late. The next packet is never examined so early.
    taken_words_reg <= let_in ? words_reg : 16'd0;
    freed_words_reg <= free_valid ? free_words : 16'd0;
    free_change_reg <= {{SPACE_WIDTH-16{1'b0}}, freed_words_reg} -
        {{SPACE_WIDTH-16{1'b0}}, taken_words_reg};
    free_words_reg <= free_words_reg + free_change_reg;

    if (rst) begin
        state_reg <= STATE_SETTLE_1;
        next_index_reg <= 0;
        waiting_reg <= 0;
        waiting_bytes_reg <= 0;
        waiting_bytes_change_reg <= 0;
        write_ptr_reg <= 0;
        read_ptr_reg <= 0;
        held_reg <= 0;
        free_words_reg <= SPACE;
        taken_words_reg <= 0;
        freed_words_reg <= 0;
        free_change_reg <= 0;
        is_serving_reg <= 1'b0;
        arrival_seen_reg <= 1'b0;
        start_division_reg <= 1'b0;
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
