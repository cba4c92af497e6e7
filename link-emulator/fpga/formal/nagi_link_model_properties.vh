// SPDX-License-Identifier: Apache-2.0
//
// Properties of nagi_link_model.
//
// QUEUE (proved by induction): the queue respects its limit and loses no packet, and the server is
// never idle while a packet waits.
// ORDER (checked up to a number of clocks): events are handled in the order of their instants.
//
// Divider and losses are abstract: they give any answer, after any time.

reg has_begun = 1'b0;

always @(posedge clk) begin
    has_begun <= 1'b1;
    if (!has_begun) assume (rst);
    if (has_begun) assume (!rst);
end

`ifdef QUEUE
reg [QUEUE_DEPTH_WIDTH:0] queued = 0;      // packets let in whose transmission has not started
reg [QUEUE_DEPTH_WIDTH:0] in_memory = 0;   // packets started whose memory is not freed
reg [QUEUE_DEPTH_WIDTH:0] waited = 0;      // waiting packets when the verdict was made

wire [QUEUE_DEPTH_WIDTH:0] counted_waiting = waiting + counts_served;
wire handles_start = state_reg[START] || state_reg[WORK] ||
    state_reg[CARRY] || state_reg[DIVIDE] || state_reg[ADD] ||
    state_reg[ASK] || state_reg[LEAVE] || state_reg[SCHEDULE];

always @(posedge clk) begin
    // A packet leaves the memory after its start.
    if (free_valid) assume (in_memory != 0);
    in_memory <= rst ? 0 : in_memory + starts - free_valid;
    queued <= rst ? 0 : queued + let_in - starts;
    if (state_reg[QUEUE]) waited <= counted_waiting;

    if (has_begun && !rst) begin
        assert (waiting == queued);
        assert (state_reg != 0 && (state_reg & (state_reg - 1'b1)) == 0);
        assert (held == queued + in_memory);
        assert ({1'b0, queued} + {1'b0, in_memory} <= (1 << QUEUE_DEPTH_WIDTH));
        if (state_reg[START] && !is_estimate_reg) assert (waiting != 0);
        if (handles_start && !is_estimate_reg) assert (!is_serving_reg);
        if (state_reg[LEAVE] || state_reg[SCHEDULE]) assert (!is_estimate_reg);
        if (is_estimate_reg) assert (!state_reg[LOOK] && !state_reg[COMPARE]);
        if (is_estimate_reg && state_reg[VERDICT]) assert (!is_let_in);
        // No packet waits while the server is free.
        if (!handles_start || is_estimate_reg) assert (waiting == 0 || is_serving_reg);
        // There is a descriptor for a packet that is let in. If a packet was in transmission, the
        // queue had room.
        if (state_reg[VERDICT] && is_let_in) begin
            assert (held < (1 << QUEUE_DEPTH_WIDTH));
            assert (waited == counted_waiting);
            if (is_serving_reg && queue_limit_kind == `NAGI_MODE_QUEUE_LIMIT_PACKETS) begin
                assert ({{40-QUEUE_DEPTH_WIDTH{1'b0}}, waited} < queue_limit);
            end
        end
    end
end

// Assume that the configuration does not change.
reg [1:0] last_kind;
reg [40:0] last_limit;
reg last_counts;
always @(posedge clk) begin
    last_kind <= queue_limit_kind;
    last_limit <= queue_limit;
    last_counts <= counts_transmission;
    if (has_begun) assume (queue_limit_kind == last_kind && queue_limit == last_limit &&
        counts_transmission == last_counts);
end
`endif

`ifdef ORDER
reg [63:0] last_event = 0;         // instant of the event that was handled last
reg [63:0] last_now = 0;
reg [63:0] last_arrival = 0;       // instant of the arrival that was taken last
reg [63:0] none_before = 0;        // later arrivals are not before this instant
reg last_arrival_valid = 1'b0;
reg [63:0] last_arrival_ns = 0;
reg last_given = 1'b0;

always @(posedge clk) begin
    // Time does not decrease. Instants are small numbers, to limit the time of the solver.
    assume (now_ns >= last_now && now_ns < 1024);
    assume (air_ns < 512 && overhead_bytes == 0 && delay_ns == 0);
    last_now <= now_ns;
    // Arrivals are in order and stay until they are taken. An arrival that is_coming did not
    // announce is not before the current instant.
    assume (!arrival_valid || is_coming);
    if (last_arrival_valid && !last_given) begin
        assume (arrival_valid && arrival_ns == last_arrival_ns);
    end
    if (arrival_valid) assume (arrival_ns >= none_before && arrival_ns >= last_arrival &&
        arrival_ns < 1024 && arrival_frame_bytes >= 14 && arrival_frame_bytes < 64);
    last_arrival_valid <= arrival_valid && !rst;
    last_arrival_ns <= arrival_ns;
    last_given <= is_given;
    if (!is_coming) none_before <= now_ns;
    if (is_given) last_arrival <= arrival_ns;
    if (ends) last_event <= served_end_reg;
    if (takes_arrival) last_event <= arrival_ns;

    if (has_begun && !rst) begin
        if (ends) assert (served_end_reg >= last_event);
        if (takes_arrival) assert (arrival_ns >= last_event);
        assert (!(ends && takes_arrival));
    end
end
`endif
