// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// TCP New Jersey's estimate of the available bandwidth, from the instants at which segments arrived at the
// receiver: Xu, Tian, Ansari, "Improving TCP Performance in Integrated Wireless Communications Networks",
// Computer Networks 47(2), 2005; the filter is TCP-Jersey's (the same authors, IEEE JSAC 22(4), 2004):
//
//   R_n = (RTT R_(n-1) + L_n) / ((t_n - t_(n-1)) + RTT)
//
// L_n is the number of bytes that the nth ACK reports as arrived; t_n is the receiver's clock in the ACK's
// timestamp (RFC 7323, TSval). The clock counts ticks: all bytes acknowledged within one tick form one sample.
#ifndef NAGI_ARITHMETIC_ARRIVAL_RATE_H
#define NAGI_ARITHMETIC_ARRIVAL_RATE_H

#include "integers.h"

struct nagi_arrival_rate {
  __u64 rate;        // R_(n-1), bytes per second
  __u32 last_ticks;  // t_(n-1), in ticks of the receiver's clock
  __u32 pending;     // bytes that have arrived since t_(n-1)
  __u8 started;      // an ACK has been counted
};

/// Add an ACK of `bytes` bytes that the receiver sent at time `ticks`, in units of `tick_us` microseconds.
/// `rtt_us` must be above 0. An ACK that a later ACK has overtaken counts as sent at the time of the later ACK.
NAGI_INLINE void nagi_arrival_rate_ack(struct nagi_arrival_rate* estimate, __u32 ticks, __u32 bytes,
                                       __u32 rtt_us, __u32 tick_us) {
  __u64 interval_us;

  if (!estimate->started) {
    estimate->started = 1;
    estimate->last_ticks = ticks;
    return;
  }
  estimate->pending += bytes;
  if (!nagi_after(ticks, estimate->last_ticks)) return;
  interval_us = (__u64)(ticks - estimate->last_ticks) * tick_us;
  estimate->rate =
      (rtt_us * estimate->rate + (__u64)estimate->pending * 1000000) / (interval_us + rtt_us);
  estimate->last_ticks = ticks;
  estimate->pending = 0;
}

#endif
