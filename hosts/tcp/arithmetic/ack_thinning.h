// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// Which ACKs a receiver keeps back: dynamic delayed ACKs of Altman and Jimenez, "Novel Delayed ACK
// Techniques for Improving TCP Performance in Multihop Wireless Networks", PWC 2003; the ACK thinning of
// ElRakabawy, Klemm and Lindemann, DSN 2005.
//
//   d = 1 for the first segments, 2 from segment `second` on, 3 from `third`, 4 from `fourth`
//   an ACK leaves when d segments have arrived since the last one, or when the first of them has waited
//   for the timer
//
// What a sender in trouble waits for leaves at once (RFC 5681, section 4.2): an ACK while a segment is
// missing, the one that says that none is missing any more, and one that acknowledges nothing new. Segments
// are counted as they arrive, from 1.
#ifndef NAGI_ARITHMETIC_ACK_THINNING_H
#define NAGI_ARITHMETIC_ACK_THINNING_H

#include "integers.h"

struct nagi_thinning_limits {
  __u32 second;
  __u32 third;
  __u32 fourth;
};

struct nagi_thinning {
  __u32 highest;  // sequence number after the last byte that has arrived
  __u32 ack;      // acknowledgement number of the last ACK, kept back or not
  __u32 let_go;   // segments that had arrived when an ACK left last
  __u32 kept;     // and those when one was kept back last
  __u8 has_data;  // some has arrived
  __u8 started;   // an ACK has left
  __u8 has_kept;  // an ACK is kept back
  __u8 is_gap;    // at the last ACK a segment was missing
};

/// d for the segment of this number.
NAGI_INLINE __u32 nagi_thinning_coefficient(__u32 segment, const struct nagi_thinning_limits* of) {
  return 1 + (segment >= of->second) + (segment >= of->third) + (segment >= of->fourth);
}

/// Data up to the sequence number `end` have arrived.
NAGI_INLINE void nagi_thinning_arrival(struct nagi_thinning* thinning, __u32 end) {
  if (!thinning->has_data || nagi_after(end, thinning->highest)) thinning->highest = end;
  thinning->has_data = 1;
}

/// A packet leaves that acknowledges what has come; `arrived` segments have so far.
NAGI_INLINE void nagi_thinning_let_go(struct nagi_thinning* thinning, __u32 ack, __u32 arrived) {
  thinning->started = 1;
  thinning->has_kept = 0;
  thinning->is_gap = thinning->has_data && nagi_after(thinning->highest, ack);
  thinning->ack = ack;
  thinning->let_go = arrived;
}

/// Whether an ACK that is about to leave is kept back; `arrived` segments have come so far. One that was
/// kept back before is superseded either way.
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

/// The timer has gone off: the ACK that was kept back leaves.
NAGI_INLINE void nagi_thinning_expire(struct nagi_thinning* thinning) {
  if (!thinning->has_kept) return;
  thinning->has_kept = 0;
  thinning->let_go = thinning->kept;
}

#endif
