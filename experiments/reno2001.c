// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// Reno as hosts of 2001 had it, for tcp-real-2001.yaml: nagi's reno (hosts/tcp/reno.c), but
//
//   again = 1:  a timer that goes off again for the same segment lowers ssthresh again, to two segments, as
//               in 4.3BSD and ns-2. RFC 5681 (2009) has it held.
//   acked = 2:  an ACK of new data stands for two segments, so the window grows half as fast: delayed ACKs
//               (RFC 1122), counted as ACKs and not as bytes.
//
// The receiver need not delay its ACKs for this, and its retransmissions stay the same.
#include "glue/scheme.h"

#include "glue/control.h"
#include "glue/loss_is_congestion.h"

NAGI_PARAMETER(cwnd_after_rto, 2, 1, 1000, "segments", "window after a timeout");
NAGI_PARAMETER(again, 1, 0, 1, "", "1: a repeated timeout lowers ssthresh again");
NAGI_PARAMETER(acked, 2, 1, 2, "segments", "that an ACK stands for");

#define NAGI_RECOVERY_OF NAGI_RENO

struct nagi_own {
  __u32 ssthresh;  // by the last timeout; 0: it has been applied
  __u32 rest;      // segments acknowledged, of less than an ACK
};

NAGI_INLINE void own_start(const struct nagi_connection* of) { (void)of; }

// The threshold is set with the next ACK, as that of a repeated timeout is not taken from a scheme.
NAGI_INLINE void own_ack(const struct nagi_connection* of, const struct nagi_ack* ack) {
  if (!ack->advances || of->own->ssthresh == 0) return;
  of->control->window.ssthresh = of->own->ssthresh;
  of->own->ssthresh = 0;
}

NAGI_INLINE void own_grow(const struct nagi_connection* of, __u32 segments) {
  of->own->rest += segments;
  nagi_grow(of, of->own->rest / acked);
  of->own->rest %= acked;
}

NAGI_INLINE void own_congestion(const struct nagi_connection* of) { nagi_halve(of); }

NAGI_INLINE enum nagi_verdict own_timeout(const struct nagi_connection* of) {
  __u32 half = nagi_half(of->control->window.cwnd, of->tp->packets_out);

  nagi_window_set(&of->control->window, cwnd_after_rto, half);
  if (again) of->own->ssthresh = half;
  return NAGI_CONGESTION;
}

NAGI_INLINE void own_describe(const struct nagi_connection* of, struct nagi_event* event) {
  (void)of;
  (void)event;
}

#include "glue/hooks.h"

NAGI_SCHEME(reno2001);
