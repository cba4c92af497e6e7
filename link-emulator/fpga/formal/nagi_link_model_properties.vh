// SPDX-License-Identifier: Apache-2.0
//
// Of nagi_link_model: events are handled in the order of their instants; the queue keeps its limit
// and loses nothing; the server never idles while something waits. Divider and losses are
// abstract: they answer anything, after any time.

reg has_begun = 1'b0;
reg [63:0] last_event = 0;         // the instant of the event handled last
reg [63:0] last_now = 0;
reg [63:0] last_arrival = 0;       // of the arrival taken last
reg [63:0] none_before = 0;        // what arrives from now on does so at that instant or later
reg last_arrival_valid = 1'b0;
reg [63:0] last_arrival_ns = 0;
reg last_given = 1'b0;
reg [QUEUE_DEPTH_WIDTH:0] queued = 0;      // let in, and not started
reg [QUEUE_DEPTH_WIDTH:0] in_memory = 0;   // started, and not freed
reg [QUEUE_DEPTH_WIDTH:0] waited = 0;  // as the verdict was made

always @(posedge clk) begin
    has_begun <= 1'b1;
    if (!has_begun) assume (rst);
    if (has_begun) assume (!rst);

    // Time does not go back, and stays below what 64 bits hold.
    assume (now_ns >= last_now && now_ns < (64'd1 << 60));
    last_now <= now_ns;
    // Arrivals keep their order and stay until they are taken. One that nobody knew of before comes
    // now or later.
    assume (!arrival_valid || is_coming);
    if (last_arrival_valid && !last_given) begin
        assume (arrival_valid && arrival_ns == last_arrival_ns);
    end
    if (arrival_valid) assume (arrival_ns >= none_before && arrival_ns >= last_arrival &&
        arrival_ns < (64'd1 << 61) && arrival_frame_bytes >= 14);
    last_arrival_valid <= arrival_valid && !rst;
    last_arrival_ns <= arrival_ns;
    last_given <= given;
    if (!is_coming) none_before <= now_ns;
    if (given) last_arrival <= arrival_ns;
    // Packets leave the memory after their start, in their order.
    if (free_valid) begin
        assume (in_memory != 0);
    end
    in_memory <= in_memory + starts - free_valid;
    queued <= queued + let_in - starts;

    if (ends) last_event <= served_end_reg;
    if (takes_arrival) last_event <= arrival_ns;
    if (state_reg == STATE_QUEUE) waited <= counted_waiting;

    if (has_begun && !rst) begin
        if (ends) assert (served_end_reg >= last_event);
        if (takes_arrival) assert (arrival_ns >= last_event);
        assert (!(ends && takes_arrival));
        assert (waiting_reg == queued);
        assert (held_reg == queued + in_memory);
        if (starts) assert (waiting_reg != 0);
        if (state_reg == STATE_IDLE && waiting_reg != 0) assert (is_serving_reg);
        assert (held_reg <= (1 << QUEUE_DEPTH_WIDTH));
        if (let_in) assert (held_reg < (1 << QUEUE_DEPTH_WIDTH));
        // What is let in while a packet is in transmission has found room.
        if (let_in && is_serving_reg && queue_limit_kind == KIND_PACKETS) begin
            assert ({{40-QUEUE_DEPTH_WIDTH{1'b0}}, waited} < queue_limit);
        end
        cover (ends && waiting_reg == 2);
        cover (given && fate_reg == FATE_QUEUE_OVERFLOW && !is_memory_overflow_reg);
    end
end
