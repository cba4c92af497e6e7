/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedule and the counters that bench-injector and its BPF programs share.
 */
#ifndef NAGI_BENCH_INJECTOR_H
#define NAGI_BENCH_INJECTOR_H

#include <linux/types.h>

struct bench_schedule {
  __u64 frames;        /* frames made so far */
  __u64 left_of_batch; /* frames of the current batch that follow */
  __u64 batch;         /* frames */
  __u64 due_ns;        /* time of the next batch */
  __u64 gap_ns;        /* time between batches */
  __u64 delays;        /* batches that were more than a millisecond late */
  __u64 interface;     /* index of the interface at which frames arrive */
};

#endif
