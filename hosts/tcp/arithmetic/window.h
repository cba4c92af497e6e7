// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// Slow start, congestion avoidance and halving: Jacobson, "Congestion Avoidance and Control",
// SIGCOMM 1988, appendix B; RFC 5681, section 3.1. All quantities are in segments.
#ifndef NAGI_ARITHMETIC_WINDOW_H
#define NAGI_ARITHMETIC_WINDOW_H

#include "integers.h"

#define NAGI_MIN_THRESHOLD 2

struct nagi_window {
  __u32 cwnd;
  __u32 ssthresh;
  __u32
      credit;  // acknowledged segments that count towards the next increase in congestion avoidance
};

/// Grow the window for `segments` acknowledged segments: below the threshold by one per segment, above the threshold
/// by one per window, and never beyond `max`.
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

/// Set cwnd and ssthresh, and clear the credit.
NAGI_INLINE void nagi_window_set(struct nagi_window* window, __u32 cwnd, __u32 ssthresh) {
  window->cwnd = cwnd;
  window->ssthresh = ssthresh;
  window->credit = 0;
}

/// Return half of the segments that were outstanding at a loss, but at least two. `window` is the window at the loss,
/// `flight` the current number of outstanding segments. `flight` also counts the segments that limited transmit
/// (RFC 3042) has sent beyond the window since the loss. RFC 5681 excludes these, so the smaller number counts.
NAGI_INLINE __u32 nagi_half(__u32 window, __u32 flight) {
  return nagi_max(nagi_min(window, flight) / 2, NAGI_MIN_THRESHOLD);
}

#endif
