// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// TCP New Jersey's estimate of the available bandwidth, from the instants at which segments arrived at the
// receiver: Xu, Tian, Ansari, "Improving TCP Performance in Integrated Wireless Communications Networks",
// Computer Networks 47(2), 2005; the filter is TCP-Jersey's (the same authors, IEEE JSAC 22(4), 2004):
//
//   R_n = (RTT R_(n-1) + L_n) / ((t_n - t_(n-1)) + RTT)
//
// L_n is what the nth ACK says to have arrived, t_n the receiver's clock in its timestamp (RFC 7323, TSval).
// That clock has ticks: what is acknowledged within one tick is one sample.
#ifndef NAGI_ARITHMETIC_ARRIVAL_RATE_H
#define NAGI_ARITHMETIC_ARRIVAL_RATE_H

#include "integers.h"

struct nagi_arrival_rate {
  __u64 rate;        // R_(n-1), bytes a second
  __u32 last_ticks;  // t_(n-1), in ticks of the receiver's clock
  __u32 pending;     // bytes that have arrived since
  __u8 started;
};

/// An ACK of `bytes` was sent at `ticks` of a clock with ticks of `tick_us`. `rtt_us` is above 0. One that
/// was sent before an earlier one counts as sent with it.
NAGI_INLINE void nagi_arrival_rate_ack(struct nagi_arrival_rate* of, __u32 ticks, __u32 bytes,
                                       __u32 rtt_us, __u32 tick_us) {
  __u64 interval_us;

  if (!of->started) {
    of->started = 1;
    of->last_ticks = ticks;
    return;
  }
  of->pending += bytes;
  if (!nagi_after(ticks, of->last_ticks)) return;
  interval_us = (__u64)(ticks - of->last_ticks) * tick_us;
  of->rate = (rtt_us * of->rate + (__u64)of->pending * 1000000) / (interval_us + rtt_us);
  of->last_ticks = ticks;
  of->pending = 0;
}

#endif
