/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of bench-sink's BPF programs, in arrays that the process reads.
 */
#ifndef NAGI_BENCH_SINK_H
#define NAGI_BENCH_SINK_H

#include <linux/types.h>

struct bench_totals {
  __u64 frames;
  __u64 bytes; /* of frames */
  __u64 duplicates;
  __u64 beyond; /* frames whose number exceeds the array */
};

struct bench_arrival {
  __s64 at_ns; /* 0 if the frame has not arrived */
  __s64 sent_ns;
};

#endif
