// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// What TCP Vegas does with its window once a round trip: Brakmo and Peterson, IEEE JSAC 13(8), 1995,
// sections III.B (congestion avoidance) and III.C (slow start).
#ifndef NAGI_ARITHMETIC_VEGAS_H
#define NAGI_ARITHMETIC_VEGAS_H

#include "backlog.h"
#include "window.h"

struct nagi_vegas {
  __u64 sum_us;   // of the round trips measured during this one
  __u32 count;    // how many they are
  __u32 base_us;  // BaseRTT: the smallest ever measured; 0: none yet
  __u32 rtt_us;   // mean of the last round trip's
  __u8 grows;     // in slow start: whether the window doubles in this round trip
};

struct nagi_vegas_limits {
  __u32 alpha;  // segments, as are the others
  __u32 beta;
  __u32 gamma;
};

NAGI_INLINE void nagi_vegas_measured(struct nagi_vegas* vegas, __u32 rtt_us) {
  vegas->sum_us += rtt_us;
  vegas->count++;
  if (vegas->base_us == 0 || rtt_us < vegas->base_us) vegas->base_us = rtt_us;
}

/// A round trip is over. Slow start doubles every other one, so that the one between, with its window
/// as it is, can be compared; it ends when more than gamma segments wait, and gives back an eighth (as
/// the authors' implementation and ns-2's do). Then one segment more below alpha, one less above beta.
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
