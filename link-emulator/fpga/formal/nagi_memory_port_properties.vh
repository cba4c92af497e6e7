// SPDX-License-Identifier: Apache-2.0
//
// Of nagi_memory_port: one of both is taken at a time, a command stays until the memory takes it,
// as many words of data are given as writes, there is room for each, and neither waits for more
// than one of the other.

reg has_begun = 1'b0;
reg was_waiting = 1'b0;
reg last_we;
reg [ADDR_WIDTH-1:0] last_addr;
reg passed_over_write = 1'b0;  // a read was taken while a write could have been
reg passed_over_read = 1'b0;
reg [DEPTH_WIDTH:0] owed = 0;  // words of data that are to be given

wire can_write = write_valid && has_room_reg;

always @(posedge clk) begin
    has_begun <= 1'b1;
    if (!has_begun) assume (rst);
    was_waiting <= cmd_valid && !cmd_ready && !rst;
    last_we <= cmd_we;
    last_addr <= cmd_addr;
    passed_over_write <= !rst && takes_read && can_write;
    passed_over_read <= !rst && takes_write && read_valid;
    // nagi_fifo's own properties.
    assume (wdata_valid == (owed != 0));
    assume (data_ready == (owed != 1 << DEPTH_WIDTH));
    // A memory takes data of writes that it has been told of.
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
