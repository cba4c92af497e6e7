// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// Slow start, congestion avoidance and halving: Jacobson, "Congestion Avoidance and Control",
// SIGCOMM 1988, appendix B; RFC 5681, section 3.1. Everything in segments.
#ifndef NAGI_ARITHMETIC_WINDOW_H
#define NAGI_ARITHMETIC_WINDOW_H

#include "integers.h"

#define NAGI_MIN_THRESHOLD 2

struct nagi_window {
  __u32 cwnd;
  __u32 ssthresh;
  __u32 credit;  // segments acknowledged towards the next one of congestion avoidance
};

/// Grows by what `segments` acknowledged segments allow: below the threshold one each, from there on
/// one a window; never beyond `max`.
NAGI_INLINE void nagi_window_grow(struct nagi_window* window, __u32 segments, __u32 max) {
  if (window->cwnd < window->ssthresh) {
    __u32 step = nagi_min(segments, window->ssthresh - window->cwnd);

    window->cwnd += step;
    segments -= step;
  }
  window->credit += segments;
  if (window->credit >= window->cwnd && segments > 0) {
    window->credit -= window->cwnd;
    window->cwnd++;
  }
  window->cwnd = nagi_min(window->cwnd, max);
}

/// Sets both to what they begin anew with; nothing is acknowledged towards the next segment yet.
NAGI_INLINE void nagi_window_set(struct nagi_window* window, __u32 cwnd, __u32 ssthresh) {
  window->cwnd = cwnd;
  window->ssthresh = ssthresh;
  window->credit = 0;
}

/// Half of what was outstanding when a segment was lost, but at least two. `flight` also counts what
/// limited transmit (RFC 3042) has sent beyond the window since then, which RFC 5681 leaves out.
NAGI_INLINE __u32 nagi_half(__u32 window, __u32 flight) {
  return nagi_max(nagi_min(window, flight) / 2, NAGI_MIN_THRESHOLD);
}

#endif
