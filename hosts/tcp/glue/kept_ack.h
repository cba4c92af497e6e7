// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// An ACK that a scheme has kept back and that is now due. The kernel's ring buffer carries it to nagi-tcp, which
// sends it.
#ifndef NAGI_GLUE_KEPT_ACK_H
#define NAGI_GLUE_KEPT_ACK_H

#include <linux/types.h>

#define NAGI_ACK_BYTES 80  // IP header without options plus the longest TCP header

struct nagi_kept_ack {
  __u32 length;                 // bytes
  __u8 packet[NAGI_ACK_BYTES];  // IP header and TCP header, whose checksum is not filled in
};

#endif
