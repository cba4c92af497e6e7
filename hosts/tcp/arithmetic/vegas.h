// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// The change of TCP Vegas's window once per round trip: Brakmo and Peterson, IEEE JSAC 13(8), 1995, sections
// III.B (congestion avoidance) and III.C (slow start).
#ifndef NAGI_ARITHMETIC_VEGAS_H
#define NAGI_ARITHMETIC_VEGAS_H

#include "backlog.h"
#include "window.h"

struct nagi_vegas {
  __u64 sum_us;   // sum of the RTTs measured during this round trip
  __u32 count;    // number of these measurements
  __u32 base_us;  // BaseRTT, the smallest RTT ever measured; 0 before the first measurement
  __u32 rtt_us;   // mean RTT of the previous round trip
  __u8 grows;     // true if the window doubles in this round trip of slow start
};

struct nagi_vegas_limits {  // all in segments
  __u32 alpha;
  __u32 beta;
  __u32 gamma;
};

/// Add a measurement of the RTT.
NAGI_INLINE void nagi_vegas_measured(struct nagi_vegas* vegas, __u32 rtt_us) {
  vegas->sum_us += rtt_us;
  vegas->count++;
  if (vegas->base_us == 0 || rtt_us < vegas->base_us) vegas->base_us = rtt_us;
}

/// Change the window at the end of a round trip.
///
/// Slow start doubles the window in every second round trip. In the other round trips the window is constant and
/// the backlog is compared with gamma: if the backlog is larger, slow start ends, and the window shrinks by an
/// eighth, as in the authors' implementation and ns-2. Congestion avoidance adds one segment if the backlog is below
/// alpha, and subtracts one segment if the backlog is above beta.
NAGI_INLINE void nagi_vegas_decide(struct nagi_vegas* vegas, struct nagi_window* window,
                                   const struct nagi_vegas_limits* limits) {
  __u32 size = window->cwnd;
  __u32 rtt_us;

  if (vegas->count == 0) return;
  rtt_us = vegas->sum_us / vegas->count;
  vegas->rtt_us = rtt_us;
  vegas->sum_us = 0;
  vegas->count = 0;
  if (size < window->ssthresh) {
    if (vegas->grows) {
      vegas->grows = 0;
    } else if (nagi_backlog_above(size, vegas->base_us, rtt_us, limits->gamma)) {
      size = nagi_max(size - size / 8, NAGI_MIN_THRESHOLD);
      nagi_window_set(window, size, NAGI_MIN_THRESHOLD);
    } else {
      vegas->grows = 1;
    }
  } else if (nagi_backlog_above(size, vegas->base_us, rtt_us, limits->beta)) {
    window->cwnd = nagi_max(size - 1, NAGI_MIN_THRESHOLD);
  } else if (nagi_backlog_below(size, vegas->base_us, rtt_us, limits->alpha)) {
    window->cwnd = size + 1;
  }
}

#endif
