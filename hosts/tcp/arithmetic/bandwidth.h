// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// Westwood's estimate of a connection's bandwidth from the rate at which ACKs return: Mascolo, Casetti, Gerla,
// Sanadidi, Wang, "TCP Westwood: Bandwidth Estimation for Enhanced Transport over Wireless Links", MobiCom 2001,
// section 2. The ACK at time t_k acknowledges d_k bytes, and tau is the filter's time constant:
//
//   b_k = d_k / D_k,  D_k = t_k - t_(k-1)
//   bhat_k = ((2 tau - D_k) bhat_(k-1) + D_k (b_k + b_(k-1))) / (2 tau + D_k)
//
// If no ACK has arrived for tau / 2 (the paper's tau / m, with m = 2), the filter takes a sample of 0.
//
// On a real host ACKs arrive in bursts that simulations do not have: the kernel processes several ACKs within a
// few microseconds, b_k grows without bounds, and the long D_k that follows multiplies it. So ACKs that arrive
// within `spacing` after a sample are added to the next sample; a simulation would have a spacing of 0.
#ifndef NAGI_ARITHMETIC_BANDWIDTH_H
#define NAGI_ARITHMETIC_BANDWIDTH_H

#include "integers.h"

#define NAGI_MAX_EMPTY_SAMPLES 32  // each multiplies the rate by 3/5, and (3/5)^32 is below 1e-7

struct nagi_bandwidth {
  __u64 rate;     // bhat_(k-1), bytes per second
  __u64 sample;   // b_(k-1), bytes per second
  __u64 last_us;  // t_(k-1), microseconds; 0 before the first ACK
  __u32 pending;  // bytes acknowledged since t_(k-1)
};

/// Update the rate with a sample of the bandwidth over `interval_us`.
NAGI_INLINE void nagi_bandwidth_filter(struct nagi_bandwidth* estimate, __u64 sample,
                                       __u64 interval_us, __u64 tau_us) {
  estimate->rate =
      ((2 * tau_us - interval_us) * estimate->rate + interval_us * (sample + estimate->sample)) /
      (2 * tau_us + interval_us);
  estimate->sample = sample;
}

/// Add an ACK at `now_us` that acknowledges `bytes` more bytes. `spacing_us` must be at least 1 and at most
/// `tau_us`.
NAGI_INLINE void nagi_bandwidth_ack(struct nagi_bandwidth* estimate, __u64 now_us, __u32 bytes,
                                    __u32 tau_us, __u32 spacing_us) {
  __u64 interval_us = now_us - estimate->last_us;
  __u32 step_us = tau_us / 2;
  __u64 empty_samples;
  __u32 i;

  if (estimate->last_us == 0) {
    estimate->last_us = now_us;
    return;
  }
  estimate->pending += bytes;
  if (interval_us < spacing_us) return;

  // At least `spacing_us` of the interval remains for the last sample.
  empty_samples = (interval_us - spacing_us) / step_us;
  if (empty_samples > NAGI_MAX_EMPTY_SAMPLES) estimate->rate = estimate->sample = 0;
  for (i = 0; i < NAGI_MAX_EMPTY_SAMPLES && i < empty_samples; i++)
    nagi_bandwidth_filter(estimate, 0, step_us, tau_us);
  interval_us -= empty_samples * step_us;
  nagi_bandwidth_filter(estimate, (__u64)estimate->pending * 1000000 / interval_us, interval_us,
                        tau_us);
  estimate->last_us = now_us;
  estimate->pending = 0;
}

/// Return the window that fills the path without a queue, bhat x RTTmin, in segments of `bytes` bytes.
NAGI_INLINE __u32 nagi_bandwidth_window(const struct nagi_bandwidth* estimate, __u32 min_rtt_us,
                                        __u32 bytes) {
  return bytes == 0 ? 0 : estimate->rate * min_rtt_us / 1000000 / bytes;
}

#endif
