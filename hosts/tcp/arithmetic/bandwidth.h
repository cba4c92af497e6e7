// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// Westwood's estimate of the bandwidth a connection gets, from the rate at which ACKs come back:
// Mascolo, Casetti, Gerla, Sanadidi, Wang, "TCP Westwood: Bandwidth Estimation for Enhanced Transport
// over Wireless Links", MobiCom 2001, section 2. With d_k bytes acknowledged by the ACK at t_k, and
// tau the filter's time constant:
//
//   b_k = d_k / D_k,  D_k = t_k - t_(k-1)
//   bhat_k = ((2 tau - D_k) bhat_(k-1) + D_k (b_k + b_(k-1))) / (2 tau + D_k)
//
// When no ACK has come for tau / 2 (the paper's tau / m, with m = 2), a sample of 0 is put in.
//
// A real host's ACKs come in bursts that no simulation has: the kernel hears of several within a few
// microseconds, b_k grows without bounds, and the long D_k that follows multiplies it. So ACKs that
// come within `spacing` of the last sample are added to the next; a simulation's spacing is 0.
#ifndef NAGI_ARITHMETIC_BANDWIDTH_H
#define NAGI_ARITHMETIC_BANDWIDTH_H

#include "integers.h"

#define NAGI_MAX_EMPTY_SAMPLES 32  // (3/5)^32 is below one part in ten millions

struct nagi_bandwidth {
  __u64 rate;     // bhat_(k-1), bytes a second
  __u64 sample;   // b_(k-1), bytes a second
  __u64 last_us;  // t_(k-1), microseconds; 0: there was no ACK yet
  __u32 pending;  // bytes acknowledged since
};

NAGI_INLINE void nagi_bandwidth_filter(struct nagi_bandwidth* of, __u64 sample, __u64 interval_us,
                                       __u64 tau_us) {
  of->rate = ((2 * tau_us - interval_us) * of->rate + interval_us * (sample + of->sample)) /
             (2 * tau_us + interval_us);
  of->sample = sample;
}

/// An ACK at `now_us` says that `bytes` more have arrived. `spacing_us` is at least 1 and at most
/// tau.
NAGI_INLINE void nagi_bandwidth_ack(struct nagi_bandwidth* of, __u64 now_us, __u32 bytes,
                                    __u32 tau_us, __u32 spacing_us) {
  __u64 interval_us = now_us - of->last_us;
  __u32 step_us = tau_us / 2;
  __u64 empty;
  __u32 i;

  if (of->last_us == 0) {
    of->last_us = now_us;
    return;
  }
  of->pending += bytes;
  if (interval_us < spacing_us) return;

  // What is left for the last sample is at least the spacing.
  empty = (interval_us - spacing_us) / step_us;
  if (empty > NAGI_MAX_EMPTY_SAMPLES) of->rate = of->sample = 0;
  for (i = 0; i < NAGI_MAX_EMPTY_SAMPLES && i < empty; i++)
    nagi_bandwidth_filter(of, 0, step_us, tau_us);
  interval_us -= empty * step_us;
  nagi_bandwidth_filter(of, (__u64)of->pending * 1000000 / interval_us, interval_us, tau_us);
  of->last_us = now_us;
  of->pending = 0;
}

/// bhat x RTTmin / segment: the window that fills the path without a queue, in segments of `bytes`.
NAGI_INLINE __u32 nagi_bandwidth_window(const struct nagi_bandwidth* of, __u32 min_rtt_us,
                                        __u32 bytes) {
  return bytes == 0 ? 0 : of->rate * min_rtt_us / 1000000 / bytes;
}

#endif
