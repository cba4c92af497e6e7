/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stamp that bench-source writes behind the headers of every frame, for bench-sink: a mark, the
 * number of the frame, and the time of sending. Numbers are in the machine's byte order, because
 * both programs run on the same machine. They also use the same CLOCK_MONOTONIC.
 */
#ifndef NAGI_BENCH_FRAME_STAMP_H
#define NAGI_BENCH_FRAME_STAMP_H

#include <linux/if_ether.h>
#include <linux/types.h>

#define BENCH_IP_HEADER_BYTES 20
#define BENCH_UDP_HEADER_BYTES 8
#define BENCH_STAMP_OFFSET (ETH_HLEN + BENCH_IP_HEADER_BYTES + BENCH_UDP_HEADER_BYTES)
#define BENCH_FRAME_MARK 0x6967616e /* "nagi" */

struct bench_stamp {
  __u32 mark;
  __u32 number;
  __s64 sent_monotonic_ns;
};

#endif
