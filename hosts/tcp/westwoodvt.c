// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// TCP WestwoodVT: Koo, Mun, Choo, "Sender-Based TCP Scheme for Improving Performance in Wireless
// Environment", ICCS 2007, section 2. This is WestwoodNR (westwoodnr.c) with one addition: at three duplicate
// ACKs in congestion avoidance it estimates how many segments wait in queues.
//
//   Expected = window / BaseRTT,  Actual = window / RTT                              equation 1
//   D = (window / BaseRTT - window / RTT) x BaseRTT                                  equation 2
//   D < alpha:  the channel has lost the segment: retransmit, keep the window
//   D > beta:   congestion: retransmit, reduce the window as WestwoodNR does
//   between:    undecided: retransmit, keep the state; the next three duplicate ACKs are classified again
//
// alpha = 14 and beta = 16 are for queues of 20 segments (section 3). In slow start the scheme does not estimate
// and always reduces the window. RTT, "the current calculated", is the latest measurement. Without SACK a
// duplicate ACK yields no measurement, so it is the RTT of the last segment that was acknowledged in order.
//
// Recovery is that of NewReno: a second loss in the same window is repaired at its partial ACK and shares the
// verdict on the first loss. The kernel forces only the differences that glue/control.h lists.
#include "glue/scheme.h"

#include "arithmetic/backlog.h"
#include "glue/westwood.h"

NAGI_PARAMETER(alpha, 14, 0, 100000, "segments",
               "backlog below which the channel lost the segment");
NAGI_PARAMETER(beta, 16, 0, 100000, "segments", "backlog above which a queue lost the segment");

#define NAGI_RECOVERY_OF NAGI_NEWRENO

NAGI_INLINE enum nagi_verdict own_duplicates(const struct nagi_connection* connection) {
  const struct nagi_window* window = &connection->control->window;
  __u32 min_rtt_us = connection->own->min_rtt_us;
  __u32 rtt_us = connection->own->rtt_us;

  if (window->cwnd >= window->ssthresh && rtt_us) {
    if (nagi_backlog_below(window->cwnd, min_rtt_us, rtt_us, alpha)) return NAGI_CHANNEL;
    if (!nagi_backlog_above(window->cwnd, min_rtt_us, rtt_us, beta)) return NAGI_UNDECIDED;
  }
  own_congestion(connection);
  return NAGI_CONGESTION;
}

NAGI_INLINE void own_describe(const struct nagi_connection* connection, struct nagi_event* event) {
  westwood_describe(connection, event);
  event->backlog_milli =
      nagi_backlog_milli(event->cwnd_before, connection->own->min_rtt_us, connection->own->rtt_us);
}

#include "glue/hooks.h"

NAGI_SCHEME(westwoodvt);
