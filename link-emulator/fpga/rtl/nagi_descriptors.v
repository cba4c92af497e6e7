// SPDX-License-Identifier: Apache-2.0

`resetall
`timescale 1ns / 1ps
`default_nettype none

/*
 * Descriptors of the admitted packets of one direction, in order of their admission. One memory
 * holds the fields that are known when a packet is admitted. Another memory holds the fields that
 * are known when its transmission starts.
 */
module nagi_descriptors #
(
    // log2 of the maximum number of packets held at a time.
    parameter QUEUE_DEPTH_WIDTH = 10
)
(
    input  wire                          clk,
    input  wire                          rst,

    // A packet is admitted.
    input  wire                          let_in,
    input  wire [15:0]                   let_in_bytes,
    input  wire [63:0]                   let_in_arrived_ns,
    input  wire [31:0]                   let_in_index,
    input  wire [31:0]                   let_in_identity,
    input  wire [1:0]                    let_in_ecn,
    input  wire                          let_in_marked,

    // The transmission of the next admitted packet starts.
    input  wire                          start_valid,
    input  wire [63:0]                   start_left_ns,
    input  wire                          start_lost,

    // The descriptor of packet `packet` is valid one clock later.
    input  wire [QUEUE_DEPTH_WIDTH-1:0]  packet,
    output wire [15:0]                   packet_bytes,
    output wire [63:0]                   packet_arrived_ns,
    output wire [31:0]                   packet_index,
    output wire [31:0]                   packet_identity,
    output wire [1:0]                    packet_ecn,
    output wire                          packet_marked,
    output wire [63:0]                   packet_left_ns,
    output wire                          packet_lost
);

localparam LET_IN_WIDTH = 16 + 64 + 32 + 32 + 2 + 1;
localparam START_WIDTH = 1 + 64;

reg [QUEUE_DEPTH_WIDTH-1:0] let_in_ptr_reg = 0;
reg [QUEUE_DEPTH_WIDTH-1:0] started_ptr_reg = 0;

nagi_ram #(.WIDTH(LET_IN_WIDTH), .ADDR_WIDTH(QUEUE_DEPTH_WIDTH)) let_in_inst (
    .clk(clk),
    .wr_en(let_in),
    .wr_addr(let_in_ptr_reg),
    .wr_data({let_in_bytes, let_in_arrived_ns, let_in_index, let_in_identity, let_in_ecn,
        let_in_marked}),
    .rd_en(1'b1),
    .rd_addr(packet),
    .rd_data({packet_bytes, packet_arrived_ns, packet_index, packet_identity, packet_ecn,
        packet_marked})
);

nagi_ram #(.WIDTH(START_WIDTH), .ADDR_WIDTH(QUEUE_DEPTH_WIDTH)) starts_inst (
    .clk(clk),
    .wr_en(start_valid),
    .wr_addr(started_ptr_reg),
    .wr_data({start_lost, start_left_ns}),
    .rd_en(1'b1),
    .rd_addr(packet),
    .rd_data({packet_lost, packet_left_ns})
);

always @(posedge clk) begin
    if (let_in) begin
        let_in_ptr_reg <= let_in_ptr_reg + 1'b1;
    end
    if (start_valid) begin
        started_ptr_reg <= started_ptr_reg + 1'b1;
    end

    if (rst) begin
        let_in_ptr_reg <= 0;
        started_ptr_reg <= 0;
    end
end

endmodule

`resetall
