// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * Fetches frames from packet memory before their release, in order. The words of
 * frames wait in a FIFO. For a packet that is lost at egress, only the descriptor is passed on.
 */
module nagi_frame_reader #
(
    parameter MEM_WIDTH = 64,
    parameter ADDR_WIDTH = 13,
    parameter QUEUE_DEPTH_WIDTH = 10,
    // log2 of the words that wait for their release.
    parameter EGRESS_WIDTH = 9
)
(
    input  wire                          clk,
    input  wire                          rst,
    // 0: the reader begins no further frame.
    input  wire                          run,

    // `started` pulses when the transmission of a packet has been scheduled. `written` pulses when
    // all words of a packet have been sent to the memory.
    input  wire                          started,
    input  wire                          written,

    // The descriptor of packet `packet` is valid one clock later.
    output wire [QUEUE_DEPTH_WIDTH-1:0]  packet,
    input  wire                          is_lost,
    input  wire [15:0]                   frame_bytes,

    output wire [ADDR_WIDTH-1:0]         read_addr,
    output wire                          read_valid,
    input  wire                          read_ready,
    // A word arrives from the memory. Only words for which there is room are requested.
    input  wire [MEM_WIDTH-1:0]          rdata,
    input  wire                          rdata_valid,

    // The words of the fetched frames.
    output wire [MEM_WIDTH-1:0]          word,
    output wire                          word_valid,
    input  wire                          word_ready,

    // The packet waits for its release, and its whole frame has been fetched.
    output wire                          fetched_valid,
    input  wire                          fetched_ready,

    output wire                          free_valid,
    output wire [15:0]                   free_words,

    output wire                          busy,
    output wire                          idle
);

localparam WORD_BYTES = MEM_WIDTH / 8;

localparam [2:0]
    STATE_IDLE = 3'd0,
    STATE_LOOK = 3'd1,
    STATE_ROOM = 3'd2,
    STATE_READ = 3'd3,
    STATE_WAIT = 3'd4,
    STATE_GIVE = 3'd5,
    STATE_COUNT = 3'd6,
    STATE_NEXT = 3'd7;

reg [2:0] state_reg = STATE_IDLE;
reg settled_reg = 1'b0;                     // registered comparisons are up to date
reg [QUEUE_DEPTH_WIDTH:0] started_reg = 0;  // packets that have started and were not fetched
reg [QUEUE_DEPTH_WIDTH:0] written_reg = 0;  // packets that were written and not fetched
reg [QUEUE_DEPTH_WIDTH-1:0] packet_reg = 0;
reg [15:0] bytes_reg = 0;
reg [15:0] words_reg = 0;
reg [15:0] to_ask_reg = 0;
reg is_last_reg = 1'b0;                     // to_ask_reg is 1
reg read_valid_reg = 1'b0;
reg [15:0] come_reg = 0;
reg have_come_reg = 1'b0;
reg has_next_reg = 1'b0;
reg has_room_reg = 1'b0;
reg is_lost_reg = 1'b0;
reg [ADDR_WIDTH-1:0] read_ptr_reg = 0;
reg free_reg = 1'b0;

wire [EGRESS_WIDTH:0] egress_room;
wire gives = state_reg == STATE_GIVE && fetched_ready;
wire has_next = started_reg != 0 && written_reg != 0;
wire [15:0] words = (bytes_reg + WORD_BYTES[15:0] - 16'd1) / WORD_BYTES[15:0];
wire has_room = {{15-EGRESS_WIDTH{1'b0}}, egress_room} >= words_reg;
wire [ADDR_WIDTH+15:0] words_wide = {{ADDR_WIDTH{1'b0}}, words_reg};
wire unused = &{1'b0, words_wide};
wire asks = read_valid && read_ready;

assign packet = packet_reg;
assign read_addr = read_ptr_reg;
assign read_valid = read_valid_reg;
assign fetched_valid = state_reg == STATE_GIVE;
assign free_valid = free_reg;
assign free_words = words_reg;
assign busy = state_reg == STATE_READ || state_reg == STATE_WAIT;
assign idle = (state_reg == STATE_IDLE && !has_next) ||
    (state_reg == STATE_ROOM && settled_reg && !has_room_reg) || (state_reg == STATE_GIVE && !fetched_ready);

nagi_ram_fifo #(.WIDTH(MEM_WIDTH), .DEPTH_WIDTH(EGRESS_WIDTH)) egress_inst (
    .clk(clk),
    .rst(rst),
    .s_data(rdata),
    .s_valid(rdata_valid),
    .m_data(word),
    .m_valid(word_valid),
    .m_ready(word_ready),
    .room(egress_room)
);

always @(posedge clk) begin
    free_reg <= gives;
    started_reg <= started_reg + {{QUEUE_DEPTH_WIDTH{1'b0}}, started} -
        {{QUEUE_DEPTH_WIDTH{1'b0}}, gives};
    written_reg <= written_reg + {{QUEUE_DEPTH_WIDTH{1'b0}}, written} -
        {{QUEUE_DEPTH_WIDTH{1'b0}}, gives};
    if (rdata_valid) begin
        come_reg <= come_reg + 1'b1;
    end
    has_next_reg <= has_next;
    has_room_reg <= has_room;
    have_come_reg <= come_reg == words_reg;
    settled_reg <= state_reg == STATE_ROOM;
    case (state_reg)
        STATE_IDLE: begin
            if (has_next_reg && run) begin
                state_reg <= STATE_LOOK;
            end
        end
        STATE_LOOK: begin
            bytes_reg <= frame_bytes;
            is_lost_reg <= is_lost;
            come_reg <= 0;
            state_reg <= STATE_COUNT;
        end
        STATE_COUNT: begin
            words_reg <= words;
            to_ask_reg <= words;
            is_last_reg <= words == 16'd1;
            state_reg <= is_lost_reg ? STATE_GIVE : STATE_ROOM;
        end
        STATE_ROOM: begin
            if (settled_reg && has_room_reg && run) begin
                read_valid_reg <= 1'b1;
                state_reg <= STATE_READ;
            end
        end
        STATE_READ: begin
            if (asks) begin
                to_ask_reg <= to_ask_reg - 1'b1;
                is_last_reg <= to_ask_reg == 16'd2;
                if (is_last_reg) begin
                    read_valid_reg <= 1'b0;
                    state_reg <= STATE_WAIT;
                end
            end
        end
        STATE_WAIT: begin
            if (have_come_reg) begin
                state_reg <= STATE_GIVE;
            end
        end
        STATE_GIVE: begin
            if (fetched_ready) begin
                packet_reg <= packet_reg + 1'b1;
                state_reg <= STATE_NEXT;
            end
        end
        // This state waits until the counts of packets are up to date.
        STATE_NEXT: state_reg <= STATE_IDLE;
        default: state_reg <= STATE_IDLE;
    endcase

    if (asks) begin
        read_ptr_reg <= read_ptr_reg + 1'b1;
    end else if (gives && is_lost_reg) begin
        read_ptr_reg <= read_ptr_reg + words_wide[ADDR_WIDTH-1:0];
    end

    if (rst) begin
        state_reg <= STATE_IDLE;
        started_reg <= 0;
        written_reg <= 0;
        packet_reg <= 0;
        read_valid_reg <= 1'b0;
        read_ptr_reg <= 0;
        free_reg <= 1'b0;
    end
end

endmodule

`resetall
