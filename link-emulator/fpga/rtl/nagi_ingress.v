// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * Receives frames, parses their headers, and buffers each frame until the model has decided on it.
 * Bad frames, and frames that are too short or too long, are dropped. For each other frame, the
 * module outputs an arrival with the frame's fields. `read_addr` selects the word of the buffer to
 * read.
 */
module nagi_ingress #
(
    parameter DATA_WIDTH = 64,
    parameter MEM_WIDTH = 64,
    parameter TIMESTAMPED = 0,
    parameter TICKS = 1,
    parameter TICK_NS = 8,
    parameter MAX_FRAME = 1536,
    // log2 of the words of the buffer, which has room for two of the longest frames.
    parameter STAGE_WIDTH = 9
)
(
    input  wire                             clk,
    input  wire                             rst,
    input  wire                             accept,
    input  wire [63:0]                      now_ns,

    input  wire [DATA_WIDTH-1:0]            s_axis_tdata,
    input  wire [DATA_WIDTH/8-1:0]          s_axis_tkeep,
    input  wire                             s_axis_tvalid,
    output wire                             s_axis_tready,
    input  wire                             s_axis_tlast,
    input  wire [(TIMESTAMPED ? 64 : TICKS-1):0]  s_axis_tuser,

    output wire [63:0]                      arrival_ns,
    output wire [15:0]                      arrival_bytes,  // length of the frame
    output wire [1:0]                       arrival_ecn,
    output wire [31:0]                      arrival_identity,
    output wire                             arrival_is_ipv4,
    output wire [9:0]                       arrival_ip_at,
    output wire [15:0]                      arrival_ip_word,
    output wire [15:0]                      arrival_marked_checksum,
    output wire                             arrival_valid,
    input  wire                             arrival_ready,

    // 1: frames have arrived that the model has not taken yet. If this output is 0, every further
    // frame arrives at the current instant or later.
    output wire                             is_coming,

    // The words of frames. `read_free` releases `read_free_words` words that are no longer needed.
    input  wire                             read_en,
    input  wire [STAGE_WIDTH-1:0]           read_addr,
    output wire [MEM_WIDTH-1:0]             read_data,
    input  wire                             read_free,
    input  wire [STAGE_WIDTH:0]             read_free_words,

    output wire                             bad_frame,
    // Further clocks change nothing.
    output wire                             idle
);

localparam MIN_FRAME = 14;
localparam ARRIVAL_WIDTH = 64 + 16 + 2 + 32 + 1 + 10 + 16 + 16;

// The state is one-hot; these are its bits.
localparam
    WORD = 0,
    PARSE = 1,
    SUM = 2,
    JUDGE = 3,
    GIVE = 4;

localparam [4:0]
    STATE_WORD = 5'd1 << WORD,
    STATE_PARSE = 5'd1 << PARSE,
    STATE_SUM = 5'd1 << SUM,
    STATE_JUDGE = 5'd1 << JUDGE,
    STATE_GIVE = 5'd1 << GIVE;

reg [4:0] state_reg = STATE_WORD;
reg [MEM_WIDTH-1:0] word_reg = 0;       // current word, shifted by one halfword per clock
reg [6:0] left_reg = 0;                 // bytes of the word that were not parsed
reg first_reg = 1'b0;                   // the halfword is the frame's first
reg in_first_reg = 1'b0;                // the word is the frame's first
reg [1:0] sum_age_reg = 0;
reg last_reg = 1'b0;
reg bad_reg = 1'b0;
reg [63:0] arrived_reg = 0;
reg [15:0] bytes_reg = 0;               // length of the frame so far
reg is_long_reg = 1'b0;
reg is_short_reg = 1'b0;
reg is_parsed_reg = 1'b0;               // the rest of the frame need not be parsed
reg [STAGE_WIDTH:0] write_ptr_reg = 0;
reg [STAGE_WIDTH:0] frame_ptr_reg = 0;  // where the frame begins
reg [STAGE_WIDTH:0] free_reg = {1'b1, {STAGE_WIDTH{1'b0}}};
reg has_room_reg = 1'b0;                // room for four words, one clock ago
reg stored_reg = 1'b0;                  // a word was stored in the previous clock
reg [STAGE_WIDTH:0] freed_reg = 0;      // words released in the previous clock
reg [STAGE_WIDTH:0] dropped_reg = 0;
reg [STAGE_WIDTH:0] returned_reg = 0;   // sum of freed_reg and dropped_reg
reg [STAGE_WIDTH:0] owed_reg = 0;       // words to add to free_reg
reg bad_frame_reg = 1'b0;
reg [5:0] coming_reg = 0;               // frames that arrived and were not taken, one clock ago
reg arrives_reg = 1'b0;
reg taken_reg = 1'b0;

wire arrives;
wire [MEM_WIDTH-1:0] word;
wire [6:0] word_bytes;
wire word_first;
wire word_last;
wire word_bad;
wire [63:0] word_arrived_ns;
wire word_valid;

wire parser_done;
wire is_ipv4;
wire [1:0] ecn;
wire [31:0] identity;
wire [9:0] ip_at;
wire [15:0] ip_word;
wire [15:0] marked_checksum;

wire give_ready;
wire parsing = state_reg[PARSE];
wire parse_half = parsing && left_reg > 1;
// parser_done is late: during the first word of a frame, it still belongs to the previous frame.
wire parsed = parser_done && !in_first_reg;
wire ends_word = left_reg <= 2 || is_parsed_reg || parsed;
// The next word is taken in the clock that parses the last halfword of the current word.
wire word_ready = (state_reg[WORD] || (parsing && ends_word && !last_reg)) &&
    (has_room_reg || is_long_reg);
wire take = word_valid && word_ready;
wire stores = take && (word_first || !is_long_reg);
wire [15:0] bytes_next = (word_first ? 16'd0 : bytes_reg) + {9'd0, word_bytes};
wire gives = state_reg[GIVE] && give_ready;
wire drops = state_reg[JUDGE] && (bad_reg || is_long_reg || is_short_reg);

assign is_coming = coming_reg != 0 || arrives_reg;
assign bad_frame = bad_frame_reg;
assign idle = state_reg[WORD] && !word_valid && !is_coming;

nagi_axis_widen #(
    .DATA_WIDTH(DATA_WIDTH),
    .MEM_WIDTH(MEM_WIDTH),
    .TIMESTAMPED(TIMESTAMPED),
    .TICKS(TICKS),
    .TICK_NS(TICK_NS)
) widen_inst (
    .clk(clk),
    .rst(rst),
    .accept(accept),
    .now_ns(now_ns),
    .s_axis_tdata(s_axis_tdata),
    .s_axis_tkeep(s_axis_tkeep),
    .s_axis_tvalid(s_axis_tvalid),
    .s_axis_tready(s_axis_tready),
    .s_axis_tlast(s_axis_tlast),
    .s_axis_tuser(s_axis_tuser),
    .arrives(arrives),
    .word(word),
    .word_bytes(word_bytes),
    .word_first(word_first),
    .word_last(word_last),
    .word_bad(word_bad),
    .word_arrived_ns(word_arrived_ns),
    .word_valid(word_valid),
    .word_ready(word_ready)
);

nagi_frame_parser parser_inst (
    .clk(clk),
    .first(parsing && first_reg),
    .half({word_reg[7:0], word_reg[15:8]}),
    .half_valid(parse_half),
    .done(parser_done),
    .is_ipv4(is_ipv4),
    .ecn(ecn),
    .identity(identity),
    .ip_at(ip_at),
    .ip_word(ip_word),
    .marked_checksum(marked_checksum)
);

nagi_ram #(.WIDTH(MEM_WIDTH), .ADDR_WIDTH(STAGE_WIDTH)) stage_inst (
    .clk(clk),
    .wr_en(stores),
    .wr_addr(write_ptr_reg[STAGE_WIDTH-1:0]),
    .wr_data(word),
    .rd_en(read_en),
    .rd_addr(read_addr),
    .rd_data(read_data)
);

nagi_registered_fifo #(.WIDTH(ARRIVAL_WIDTH), .DEPTH_WIDTH(4)) arrivals_inst (
    .clk(clk),
    .rst(rst),
    .s_data({arrived_reg, bytes_reg, ecn, identity, is_ipv4, ip_at, ip_word, marked_checksum}),
    .s_valid(state_reg[GIVE]),
    .s_ready(give_ready),
    .m_data({arrival_ns, arrival_bytes, arrival_ecn, arrival_identity, arrival_is_ipv4,
        arrival_ip_at, arrival_ip_word, arrival_marked_checksum}),
    .m_valid(arrival_valid),
    .m_ready(arrival_ready)
);

always @(posedge clk) begin
    bad_frame_reg <= drops;
    // is_long_reg is one clock late. So one more word may be stored before a frame that is too long
    // is dropped.
    is_short_reg <= bytes_reg < MIN_FRAME[15:0];
    is_long_reg <= !drops && (is_long_reg || bytes_reg > MAX_FRAME[15:0]);
    if (drops) begin
        bytes_reg <= 0;
    end else if (take) begin
        bytes_reg <= bytes_next;
    end
    left_reg <= left_reg - 7'd2;
    first_reg <= 1'b0;
    word_reg <= {16'd0, word_reg[MEM_WIDTH-1:16]};
    if (take) begin
        left_reg <= word_bytes;
        first_reg <= word_first;
        in_first_reg <= word_first;
        last_reg <= word_last;
        bad_reg <= word_bad;
        arrived_reg <= word_arrived_ns;
        word_reg <= word;
    end
    sum_age_reg <= state_reg[SUM] ? sum_age_reg + 1'b1 : 2'd0;

    (* parallel_case *)
    case (1'b1)
        state_reg[WORD]: begin
            if (take) begin
                if (word_first) begin
                    is_parsed_reg <= 1'b0;
                end
                if (word_first || !is_parsed_reg) begin
                    state_reg <= STATE_PARSE;
                end else if (word_last) begin
                    state_reg <= STATE_SUM;
                end
            end
        end
        state_reg[PARSE]: begin
            if (ends_word) begin
                is_parsed_reg <= parsed;
                if (last_reg) begin
                    state_reg <= STATE_SUM;
                end else if (!take) begin
                    state_reg <= STATE_WORD;
                end else if (parsed) begin
                    state_reg <= word_last ? STATE_SUM : STATE_WORD;
                end
            end
        end
        // This state waits until the parser has computed its results.
        state_reg[SUM]: begin
            if (&sum_age_reg) begin
                state_reg <= STATE_JUDGE;
            end
        end
        state_reg[JUDGE]: state_reg <= drops ? STATE_WORD : STATE_GIVE;
        state_reg[GIVE]: begin
            if (give_ready) begin
                state_reg <= STATE_WORD;
            end
        end
        default: state_reg <= STATE_WORD;
    endcase

    if (drops) begin
        write_ptr_reg <= frame_ptr_reg;
    end else if (stores) begin
        write_ptr_reg <= write_ptr_reg + 1'b1;
    end
    if (gives) begin
        frame_ptr_reg <= write_ptr_reg;
    end
    stored_reg <= stores;
    has_room_reg <= free_reg[STAGE_WIDTH:2] != 0;
    freed_reg <= read_free ? read_free_words : 0;
    dropped_reg <= drops ? write_ptr_reg - frame_ptr_reg : 0;
    returned_reg <= freed_reg + dropped_reg;
    owed_reg <= (stored_reg ? owed_reg : 0) + returned_reg;
    free_reg <= free_reg + (stored_reg ? {STAGE_WIDTH+1{1'b1}} : owed_reg);

    arrives_reg <= arrives;
    taken_reg <= arrival_valid && arrival_ready;
    coming_reg <= coming_reg + {5'd0, arrives_reg} - {5'd0, bad_frame_reg} - {5'd0, taken_reg};

    if (rst) begin
        state_reg <= STATE_WORD;
        write_ptr_reg <= 0;
        frame_ptr_reg <= 0;
        free_reg <= {1'b1, {STAGE_WIDTH{1'b0}}};
        has_room_reg <= 1'b0;
        stored_reg <= 1'b0;
        freed_reg <= 0;
        dropped_reg <= 0;
        returned_reg <= 0;
        owed_reg <= 0;
        bytes_reg <= 0;
        is_long_reg <= 1'b0;
        bad_frame_reg <= 1'b0;
        coming_reg <= 0;
        arrives_reg <= 1'b0;
        taken_reg <= 1'b0;
    end
end

endmodule

`resetall
