// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// Estimate of how many segments of a connection wait in queues: Brakmo and Peterson, "TCP Vegas", IEEE JSAC
// 13(8), 1995, section III.B:
//
//   Expected = window / BaseRTT,  Actual = window / RTT
//   Diff = (Expected - Actual) x BaseRTT = window x (RTT - BaseRTT) / RTT
#ifndef NAGI_ARITHMETIC_BACKLOG_H
#define NAGI_ARITHMETIC_BACKLOG_H

#include "integers.h"

/// Return Diff x RTT = window x (RTT - BaseRTT). BaseRTT must not exceed RTT; both are in microseconds.
NAGI_INLINE __u64 nagi_backlog_times_rtt(__u32 window, __u32 base_us, __u32 rtt_us) {
  return (__u64)window * (rtt_us - base_us);
}

/// Return whether Diff is below `segments`, without rounding.
NAGI_INLINE int nagi_backlog_below(__u32 window, __u32 base_us, __u32 rtt_us, __u32 segments) {
  return nagi_backlog_times_rtt(window, base_us, rtt_us) < (__u64)segments * rtt_us;
}

/// Return whether Diff is above `segments`, without rounding.
NAGI_INLINE int nagi_backlog_above(__u32 window, __u32 base_us, __u32 rtt_us, __u32 segments) {
  return nagi_backlog_times_rtt(window, base_us, rtt_us) > (__u64)segments * rtt_us;
}

/// Return Diff in thousandths of a segment, the unit of events; 0 before the first RTT measurement.
NAGI_INLINE __u32 nagi_backlog_milli(__u32 window, __u32 base_us, __u32 rtt_us) {
  if (rtt_us == 0) return 0;
  return nagi_backlog_times_rtt(window, base_us, rtt_us) * 1000 / rtt_us;
}

#endif
