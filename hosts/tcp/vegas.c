// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// TCP Vegas: Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global Internet",
// IEEE JSAC 13(8), 1995.
//
//   Diff = window x (RTT - BaseRTT) / RTT        section III.B, in segments; BaseRTT: smallest RTT
//   once a round trip, in congestion avoidance:  Diff < alpha: window + 1;  Diff > beta: window - 1
//   in slow start:                               the window doubles every other round trip; in the one
//                                                between, Diff > gamma ends slow start  (section III.C)
//
// What the paper leaves open is as in the authors' implementation and in ns-2's port of it: RTT is the
// mean of the round trip's measurements; the end of slow start gives back an eighth; a loss takes a
// quarter, not half, and no reduction is smaller than two segments; after a timeout the window is two
// and the threshold half. Thresholds of 2 and 4 are Linux's, 1 and 3 ns-2's; gamma is 1 in both.
//
// What the kernel forces: Vegas also retransmits at the first duplicate ACK if its own finer timer has
// gone off (section III.A). Here the kernel decides when a segment is lost: by three duplicate ACKs, and
// in recovery by partial ACKs (RFC 6582), which stand for Vegas's look at the first two ACKs after a
// retransmission. The rest is in glue/control.h.
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
  __u32 round_end;  // the sequence number whose ACK ends this round trip
};

NAGI_INLINE void begin_round(const struct nagi_connection* of) {
  of->own->vegas.sum_us = 0;
  of->own->vegas.count = 0;
  of->own->vegas.grows = 1;
  of->own->round_end = of->tp->snd_nxt;
}

NAGI_INLINE void own_start(const struct nagi_connection* of) { begin_round(of); }

NAGI_INLINE void own_ack(const struct nagi_connection* of, const struct nagi_ack* ack) {
  if (ack->rtt_us) nagi_vegas_measured(&of->own->vegas, ack->rtt_us);
}

NAGI_INLINE void own_grow(const struct nagi_connection* of, __u32 segments) {
  struct nagi_window* window = &of->control->window;
  struct nagi_vegas_limits limits = {.alpha = alpha, .beta = beta, .gamma = gamma};

  if (window->cwnd < window->ssthresh && of->own->vegas.grows)
    nagi_grow(of, nagi_min(segments, window->ssthresh - window->cwnd));
  if (nagi_after(of->own->round_end, of->tp->snd_una)) return;
  nagi_vegas_decide(&of->own->vegas, window, &limits);
  window->cwnd = nagi_min(window->cwnd, of->tp->snd_cwnd_clamp);
  of->own->round_end = of->tp->snd_nxt;
}

NAGI_INLINE void own_congestion(const struct nagi_connection* of) {
  struct nagi_window* window = &of->control->window;
  __u32 size = nagi_max((__u64)window->cwnd * beta_percent / 100, NAGI_MIN_THRESHOLD);

  nagi_window_set(window, size, NAGI_MIN_THRESHOLD);
  begin_round(of);
}

NAGI_INLINE enum nagi_verdict own_timeout(const struct nagi_connection* of) {
  struct nagi_window* window = &of->control->window;

  nagi_window_set(window, cwnd_after_rto, nagi_half(window->cwnd, of->tp->packets_out));
  begin_round(of);
  return NAGI_CONGESTION;
}

NAGI_INLINE void own_describe(const struct nagi_connection* of, struct nagi_event* event) {
  const struct nagi_vegas* vegas = &of->own->vegas;

  event->rtt_us = vegas->rtt_us;
  event->min_rtt_us = vegas->base_us;
  event->backlog_milli =
      nagi_backlog_milli(of->control->window.cwnd, vegas->base_us, vegas->rtt_us);
}

#include "glue/hooks.h"

NAGI_SCHEME(vegas);
