/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What bench-source writes into every frame behind the headers, for bench-sink: a mark, the frame's
 * number, and when it was sent. In the machine's own byte order: both ends run on one machine and
 * share its CLOCK_MONOTONIC.
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
