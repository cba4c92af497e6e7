// SPDX-License-Identifier: Apache-2.0
//
// Of nagi_link_model. QUEUE, by induction: the queue keeps its limit and loses nothing, the server
// never idles while something waits. ORDER, up to a depth: events are handled in the order of their
// instants. Divider and losses are abstract: they answer anything, after any time.

reg has_begun = 1'b0;

always @(posedge clk) begin
    has_begun <= 1'b1;
    if (!has_begun) assume (rst);
    if (has_begun) assume (!rst);
end

`ifdef QUEUE
reg [QUEUE_DEPTH_WIDTH:0] queued = 0;      // let in, and not started
reg [QUEUE_DEPTH_WIDTH:0] in_memory = 0;   // started, and not freed
reg [QUEUE_DEPTH_WIDTH:0] waited = 0;      // as the verdict was made

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
        // Nothing waits for a server that is free.
        if (!handles_start || is_estimate_reg) assert (waiting == 0 || is_serving_reg);
        // There is a descriptor for what is let in; it has found room, if a packet was in
        // transmission.
        if (state_reg[VERDICT] && is_let_in) begin
            assert (held < (1 << QUEUE_DEPTH_WIDTH));
            assert (waited == counted_waiting);
            if (is_serving_reg && queue_limit_kind == `NAGI_MODE_QUEUE_LIMIT_PACKETS) begin
                assert ({{40-QUEUE_DEPTH_WIDTH{1'b0}}, waited} < queue_limit);
            end
        end
    end
end

// The configuration is fixed.
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
reg [63:0] last_event = 0;         // the instant of the event handled last
reg [63:0] last_now = 0;
reg [63:0] last_arrival = 0;       // of the arrival taken last
reg [63:0] none_before = 0;        // what arrives from now on does so at that instant or later
reg last_arrival_valid = 1'b0;
reg [63:0] last_arrival_ns = 0;
reg last_given = 1'b0;

always @(posedge clk) begin
    // Time does not go back. Instants are short, as the solver's time is.
    assume (now_ns >= last_now && now_ns < 1024);
    assume (air_ns < 512 && overhead_bytes == 0 && delay_ns == 0);
    last_now <= now_ns;
    // Arrivals keep their order and stay until they are taken. One that nobody knew of before comes
    // now or later.
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
