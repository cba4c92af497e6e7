// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// ACK thinning at the receiver. The rule is in arithmetic/ack_thinning.h. The default thresholds (2, 5 and 9
// segments) and the timer (100 ms) are those of Altman and Jimenez, "Novel Delayed ACK Techniques for Improving
// TCP Performance in Multihop Wireless Networks", PWC 2003.
//
// This scheme runs at the receiver. It works with every scheme at the sender, which needs no change. If the
// receiver itself sends data, it sends it as Reno does (reno.c).
//
// The kernel must acknowledge every segment at once (the route attribute `quickack`), so that an ACK exists
// whenever one is due. The kernel assumes that it has sent the ACKs that this scheme keeps back.
#define NAGI_SHARED
#define NAGI_SEES_ARRIVALS
#define NAGI_KEEPS_ACKS

#include "glue/scheme.h"

#include "arithmetic/ack_thinning.h"
#include "glue/control.h"
#include "glue/loss_is_congestion.h"
#include "glue/packets.h"
#include "glue/reno_growth.h"
#include "glue/window_alone.h"

NAGI_PARAMETER(second, 2, 1, 1000000, "segments", "number of the segment from which on d is 2");
NAGI_PARAMETER(third, 5, 1, 1000000, "segments", "number of the segment from which on d is 3");
NAGI_PARAMETER(fourth, 9, 1, 1000000, "segments", "number of the segment from which on d is 4");
NAGI_PARAMETER(timer, 100, 1, 10000, "ms", "longest time to keep back an ACK");

#define NAGI_RECOVERY_OF NAGI_RENO

struct nagi_shared {
  struct nagi_thinning thinning;
};

NAGI_INLINE void own_congestion(const struct nagi_connection* connection) {
  nagi_halve(connection);
}

NAGI_INLINE enum nagi_verdict own_timeout(const struct nagi_connection* connection) {
  own_congestion(connection);
  nagi_window_set(&connection->control->window, 1, connection->control->window.ssthresh);
  return NAGI_CONGESTION;
}

NAGI_INLINE void own_share(struct nagi_shared* shared) { (void)shared; }

NAGI_INLINE void own_arrival(struct nagi_shared* shared, const struct nagi_packet* packet) {
  if (packet->payload != 0)
    nagi_thinning_arrival(&shared->thinning, packet->sequence + packet->payload);
}

NAGI_INLINE void own_lets_go(struct nagi_shared* shared, const struct nagi_packet* packet) {
  nagi_thinning_let_go(&shared->thinning, packet->acknowledgement, packet->arrived);
}

NAGI_INLINE _Bool own_keeps(struct nagi_shared* shared, const struct nagi_packet* packet) {
  struct nagi_thinning_limits limits = {.second = second, .third = third, .fourth = fourth};

  return nagi_thinning_keeps(&shared->thinning, packet->acknowledgement, packet->arrived, &limits);
}

NAGI_INLINE void own_expire(struct nagi_shared* shared) { nagi_thinning_expire(&shared->thinning); }

NAGI_INLINE __u32 own_timer_us(void) { return timer * 1000; }

#include "glue/hooks.h"

NAGI_SCHEME(ackthin);
