/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time stamp that stamp.bpf.c writes in front of a frame, for af_xdp.cpp.
 */
#ifndef NAGI_IO_STAMP_H
#define NAGI_IO_STAMP_H

#include <linux/types.h>

#define NAGI_STAMP_MAGIC 0x6e616769 /* "nagi" */

struct nagi_stamp {
  __u64 magic;
  __u64 monotonic_ns;
};

#endif
