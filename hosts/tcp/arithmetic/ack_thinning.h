// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// The rule by which a receiver keeps back ACKs: the dynamic delayed ACKs of Altman and Jimenez, "Novel Delayed
// ACK Techniques for Improving TCP Performance in Multihop Wireless Networks", PWC 2003, which ElRakabawy, Klemm
// and Lindemann (DSN 2005) call ACK thinning.
//
//   d = 1 for the first segments, 2 from segment `second` on, 3 from `third`, 4 from `fourth`
//   An ACK leaves when d segments have arrived since the previous ACK, or when a timer expires. The first of
//   these segments starts the timer.
//
// ACKs that a sender in loss recovery waits for leave at once (RFC 5681, section 4.2): every ACK while a segment
// is missing, the ACK that fills the gap, and an ACK that acknowledges no new data. Segments are counted in the
// order of arrival, from 1.
#ifndef NAGI_ARITHMETIC_ACK_THINNING_H
#define NAGI_ARITHMETIC_ACK_THINNING_H

#include "integers.h"

struct nagi_thinning_limits {
  __u32 second;
  __u32 third;
  __u32 fourth;
};

struct nagi_thinning {
  __u32 highest;  // sequence number after the highest byte that has arrived
  __u32 ack;      // acknowledgement number of the latest ACK, kept back or not
  __u32 let_go;   // number of segments that had arrived when an ACK last left
  __u32 kept;     // number of segments that had arrived when an ACK was last kept back
  __u8 has_data;  // data has arrived
  __u8 started;   // an ACK has left
  __u8 has_kept;  // an ACK is kept back
  __u8 is_gap;    // a segment was missing at the latest ACK
};

/// Return d for segment number `segment`.
NAGI_INLINE __u32 nagi_thinning_coefficient(__u32 segment,
                                            const struct nagi_thinning_limits* limits) {
  return 1 + (segment >= limits->second) + (segment >= limits->third) + (segment >= limits->fourth);
}

/// Record that data up to the sequence number `end` has arrived.
NAGI_INLINE void nagi_thinning_arrival(struct nagi_thinning* thinning, __u32 end) {
  if (!thinning->has_data || nagi_after(end, thinning->highest)) thinning->highest = end;
  thinning->has_data = 1;
}

/// Record that a packet with acknowledgement number `ack` leaves. `arrived` segments have arrived in total.
NAGI_INLINE void nagi_thinning_let_go(struct nagi_thinning* thinning, __u32 ack, __u32 arrived) {
  thinning->started = 1;
  thinning->has_kept = 0;
  thinning->is_gap = thinning->has_data && nagi_after(thinning->highest, ack);
  thinning->ack = ack;
  thinning->let_go = arrived;
}

/// Return whether to keep back an ACK that is about to leave. `arrived` segments have arrived in total. Kept back
/// or not, the ACK replaces the ACK that was kept back before, if there is one.
NAGI_INLINE int nagi_thinning_keeps(struct nagi_thinning* thinning, __u32 ack, __u32 arrived,
                                    const struct nagi_thinning_limits* limits) {
  int is_gap = thinning->has_data && nagi_after(thinning->highest, ack);
  int keeps = thinning->started && !is_gap && !thinning->is_gap && nagi_after(ack, thinning->ack) &&
              arrived - thinning->let_go < nagi_thinning_coefficient(arrived, limits);

  if (!keeps) {
    nagi_thinning_let_go(thinning, ack, arrived);
    return 0;
  }
  thinning->ack = ack;
  thinning->kept = arrived;
  thinning->has_kept = 1;
  return 1;
}

/// Record that the timer has expired and the kept ACK leaves.
NAGI_INLINE void nagi_thinning_expire(struct nagi_thinning* thinning) {
  if (!thinning->has_kept) return;
  thinning->has_kept = 0;
  thinning->let_go = thinning->kept;
}

#endif
