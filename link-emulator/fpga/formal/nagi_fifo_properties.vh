// SPDX-License-Identifier: Apache-2.0
//
// Properties of nagi_fifo: each entry that is written is read once, in order, and no entry is
// overwritten before it is read.

(* anyconst *) reg [DEPTH_WIDTH-1:0] tracked;  // index of the entry that the proof follows
reg [WIDTH-1:0] tracked_data;
reg is_in = 1'b0;
reg has_begun = 1'b0;

wire [DEPTH_WIDTH-1:0] tracked_from_first = tracked - read_ptr_reg;
wire [DEPTH_WIDTH-1:0] difference = write_ptr_reg - read_ptr_reg;

always @(posedge clk) begin
    has_begun <= 1'b1;
    if (!has_begun) assume (rst);
    if (s_valid && s_ready && write_ptr_reg == tracked) begin
        tracked_data <= s_data;
        is_in <= 1'b1;
    end
    if (m_valid && m_ready && read_ptr_reg == tracked) begin
        is_in <= 1'b0;
    end
    if (rst) is_in <= 1'b0;
    if (has_begun && !rst) begin
        assert (held_reg <= ENTRIES);
        assert (difference == held_reg[DEPTH_WIDTH-1:0]);
        assert (m_valid == (held_reg != 0));
        assert (s_ready == (held_reg != ENTRIES));
        assert (is_in == ({1'b0, tracked_from_first} < held_reg));
        if (is_in) assert (memory[tracked] == tracked_data);
        if (is_in && read_ptr_reg == tracked) assert (m_data == tracked_data);
    end
end
