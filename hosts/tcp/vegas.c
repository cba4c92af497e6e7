// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// TCP Vegas: Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global Internet",
// IEEE JSAC 13(8), 1995.
//
//   Diff = window x (RTT - BaseRTT) / RTT          section III.B, in segments; BaseRTT is the smallest RTT
//   congestion avoidance, once per round trip:     Diff < alpha: window + 1;  Diff > beta: window - 1
//   slow start (section III.C):                    the window doubles in every second round trip; in the other
//                                                  ones, Diff > gamma ends slow start
//
// Where the paper is silent, this file follows the authors' implementation and its port to ns-2. RTT is the mean
// of the measurements in a round trip. At the end of slow start the window shrinks by an eighth. At a loss it
// shrinks by a quarter, not by half, and never below two segments. After a timeout the window is two segments
// and the threshold is half of the window. The default thresholds of 2 and 4 are those of Linux (ns-2: 1 and 3);
// gamma is 1 in both.
//
// The kernel forces one difference. Vegas also retransmits at the first duplicate ACK if its own, finer timer
// has expired (section III.A). Here the kernel decides when a segment is lost: at three duplicate ACKs, and in
// recovery at partial ACKs (RFC 6582), which replace Vegas's check at the first two ACKs after a retransmission.
// glue/control.h lists the differences that all schemes share.
#include "glue/scheme.h"

#include "arithmetic/vegas.h"
#include "glue/control.h"
#include "glue/loss_is_congestion.h"

NAGI_PARAMETER(alpha, 2, 0, 1000, "segments", "backlog below which the window grows");
NAGI_PARAMETER(beta, 4, 0, 1000, "segments", "backlog above which the window shrinks");
NAGI_PARAMETER(gamma, 1, 0, 1000, "segments", "backlog above which slow start ends");
NAGI_PARAMETER(beta_percent, 75, 1, 100, "%", "share of the window that a loss leaves");
NAGI_PARAMETER(cwnd_after_rto, 2, 1, 1000, "segments", "window after a timeout");

#define NAGI_RECOVERY_OF NAGI_NEWRENO

struct nagi_own {
  struct nagi_vegas vegas;
  __u32 round_end;  // sequence number whose ACK ends this round trip
};

NAGI_INLINE void begin_round(const struct nagi_connection* connection) {
  connection->own->vegas.sum_us = 0;
  connection->own->vegas.count = 0;
  connection->own->vegas.grows = 1;
  connection->own->round_end = connection->tp->snd_nxt;
}

NAGI_INLINE void own_start(const struct nagi_connection* connection) { begin_round(connection); }

NAGI_INLINE void own_ack(const struct nagi_connection* connection, const struct nagi_ack* ack) {
  if (ack->rtt_us) nagi_vegas_measured(&connection->own->vegas, ack->rtt_us);
}

NAGI_INLINE void own_grow(const struct nagi_connection* connection, __u32 segments) {
  struct nagi_window* window = &connection->control->window;
  struct nagi_vegas_limits limits = {.alpha = alpha, .beta = beta, .gamma = gamma};

  if (window->cwnd < window->ssthresh && connection->own->vegas.grows)
    nagi_grow(connection, nagi_min(segments, window->ssthresh - window->cwnd));
  if (nagi_after(connection->own->round_end, connection->tp->snd_una)) return;
  nagi_vegas_decide(&connection->own->vegas, window, &limits);
  window->cwnd = nagi_min(window->cwnd, connection->tp->snd_cwnd_clamp);
  connection->own->round_end = connection->tp->snd_nxt;
}

NAGI_INLINE void own_congestion(const struct nagi_connection* connection) {
  struct nagi_window* window = &connection->control->window;
  __u32 size = nagi_max((__u64)window->cwnd * beta_percent / 100, NAGI_MIN_THRESHOLD);

  nagi_window_set(window, size, NAGI_MIN_THRESHOLD);
  begin_round(connection);
}

NAGI_INLINE enum nagi_verdict own_timeout(const struct nagi_connection* connection) {
  struct nagi_window* window = &connection->control->window;

  nagi_window_set(window, cwnd_after_rto, nagi_half(window->cwnd, connection->tp->packets_out));
  begin_round(connection);
  return NAGI_CONGESTION;
}

NAGI_INLINE void own_describe(const struct nagi_connection* connection, struct nagi_event* event) {
  const struct nagi_vegas* vegas = &connection->own->vegas;

  event->rtt_us = vegas->rtt_us;
  event->min_rtt_us = vegas->base_us;
  event->backlog_milli =
      nagi_backlog_milli(connection->control->window.cwnd, vegas->base_us, vegas->rtt_us);
}

#include "glue/hooks.h"

NAGI_SCHEME(vegas);
