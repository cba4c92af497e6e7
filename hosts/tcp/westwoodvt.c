// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// TCP WestwoodVT: Koo, Mun, Choo, "Sender-Based TCP Scheme for Improving Performance in Wireless
// Environment", ICCS 2007, section 2. WestwoodNR (westwoodnr.c) that asks, at three duplicate ACKs in
// congestion avoidance, how many segments wait in queues:
//
//   Expected = window / BaseRTT,  Actual = window / RTT                              equation 1
//   D = (window / BaseRTT - window / RTT) x BaseRTT                                  equation 2
//   D < alpha:  the channel has lost the segment: retransmit, change nothing
//   D > beta:   congestion: WestwoodNR's reduction
//   between:    undecided: retransmit, keep the state; the next three duplicate ACKs are asked anew
//
// alpha = 14 and beta = 16 are for queues of 20 segments (section 3). In slow start nothing is asked, and
// the window reduced. RTT, "the current calculated", is the last one measured: without SACK a duplicate
// ACK measures none, so it is that of the last segment acknowledged in order.
//
// Recovery is NewReno's: a second loss in the same window is repaired at its partial ACK and belongs to
// the verdict on the first. Nothing is forced but what glue/control.h lists.
#include "glue/scheme.h"

#include "arithmetic/backlog.h"
#include "glue/westwood.h"

NAGI_PARAMETER(alpha, 14, 0, 100000, "segments",
               "backlog below which the channel lost the segment");
NAGI_PARAMETER(beta, 16, 0, 100000, "segments", "backlog above which a queue lost the segment");

#define NAGI_RECOVERY_OF NAGI_NEWRENO

NAGI_INLINE enum nagi_verdict own_duplicates(const struct nagi_connection* of) {
  const struct nagi_window* window = &of->control->window;
  __u32 least_us = of->own->min_rtt_us;
  __u32 rtt_us = of->own->rtt_us;

  if (window->cwnd >= window->ssthresh && rtt_us) {
    if (nagi_backlog_below(window->cwnd, least_us, rtt_us, alpha)) return NAGI_CHANNEL;
    if (!nagi_backlog_above(window->cwnd, least_us, rtt_us, beta)) return NAGI_UNDECIDED;
  }
  own_congestion(of);
  return NAGI_CONGESTION;
}

NAGI_INLINE void own_describe(const struct nagi_connection* of, struct nagi_event* event) {
  westwood_describe(of, event);
  event->backlog_milli =
      nagi_backlog_milli(event->cwnd_before, of->own->min_rtt_us, of->own->rtt_us);
}

#include "glue/hooks.h"

NAGI_SCHEME(westwoodvt);
