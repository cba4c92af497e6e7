// SPDX-License-Identifier: Apache-2.0
//
// Properties of nagi_memory_port: reader and writer are never served in the same clock, a command
// stays until the memory takes it, each write has one word of data and room for it, and while one
// of the two waits, at most one command of the other is taken.

reg has_begun = 1'b0;
reg was_waiting = 1'b0;
reg last_we;
reg [ADDR_WIDTH-1:0] last_addr;
reg passed_over_write = 1'b0;  // a read was taken although a write could have been taken
reg passed_over_read = 1'b0;
reg [DEPTH_WIDTH:0] owed = 0;  // words of data that the module must still send

wire can_write = write_valid && has_room_reg;

always @(posedge clk) begin
    has_begun <= 1'b1;
    if (!has_begun) assume (rst);
    was_waiting <= cmd_valid && !cmd_ready && !rst;
    last_we <= cmd_we;
    last_addr <= cmd_addr;
    passed_over_write <= !rst && takes_read && can_write;
    passed_over_read <= !rst && takes_write && read_valid;
    // Properties of nagi_fifo, which are proved separately.
    assume (wdata_valid == (owed != 0));
    assume (data_ready == (owed != 1 << DEPTH_WIDTH));
    // The memory takes data only for writes whose command it has received.
    if (wdata_ready) assume (owed != 0);
    owed <= rst ? 0 : owed + takes_write - (wdata_valid && wdata_ready);
    if (has_begun && !rst) begin
        assert (can_take_reg == !spare_valid_reg);
        assert (!(takes_write && takes_read));
        if (takes_write) assert (data_ready);
        assert (owed <= MAX_WAITING + 2);
        assert (waiting_reg == owed + gone_reg);
        assert (waiting_reg <= MAX_WAITING + 2);
        if (has_room_reg) assert (waiting_reg <= MAX_WAITING + 1);
        if (was_waiting) begin
            assert (cmd_valid);
            assert (cmd_we == last_we);
            assert (cmd_addr == last_addr);
        end
        if (passed_over_write && can_take && can_write) assert (takes_write);
        if (passed_over_read && can_take && read_valid) assert (takes_read);
        cover (takes_write && passed_over_write);
    end
end
