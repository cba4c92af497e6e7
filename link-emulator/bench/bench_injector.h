/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What bench-injector and its BPF programs tell each other.
 */
#ifndef NAGI_BENCH_INJECTOR_H
#define NAGI_BENCH_INJECTOR_H

#include <linux/types.h>

struct bench_schedule {
  __u64 frames;
  __u64 left_of_batch;
  __u64 batch; /* frames */
  __u64 due_ns;
  __u64 gap_ns;    /* between batches */
  __u64 delays;    /* of more than a millisecond */
  __u64 interface; /* where frames are to arrive, by its index */
};

#endif
