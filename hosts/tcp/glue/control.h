// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// What the schemes do alike: when a window grows, what a loss is, and how the kernel is brought to send
// what the scheme would.
//
// The kernel detects losses and keeps the books (all without SACK here); through cong_control a scheme
// says after every ACK how large the window is, and PRR (RFC 6937), which would spread a reduction over
// a round trip, stays out of it. `window` below is the scheme's cwnd, as its paper means it; the
// kernel's snd_cwnd follows from it:
//
// - The kernel compares snd_cwnd with what is outstanding less what duplicate ACKs and its marks of lost
//   segments have taken from it. So "inflating" the window by one for each duplicate ACK is already
//   done: in fast recovery snd_cwnd is the deflated window.
// - A segment that is marked lost goes out only below snd_cwnd, which at the third duplicate ACK is half
//   of what is outstanding. So one segment is let out above the window when a retransmission is due.
// - In recovery the kernel marks the first segment lost at every ACK that does not end it (NewReno, RFC
//   6582). A scheme that does not retransmit then holds snd_cwnd at what is outstanding; nothing at all
//   goes out in that time, since the kernel would send the marked segment before any new one.
//
// What the kernel does not let go of, with any of these schemes:
// - It sends a new segment for each of the first two duplicate ACKs (limited transmit, RFC 3042; ns-2's
//   default, too).
// - In recovery it hears no duplicate ACKs while exactly what was sent before it is acknowledged. If the
//   first segment after that is lost, the retransmission timer has to notice.
// - After duplicate ACKs that it cannot explain (of segments sent twice) it waits for more than three;
//   the sysctls tcp_reordering = tcp_max_reordering = 3 keep it from that.
// - When the retransmission timer goes off it sends one segment; a window of more counts from its ACK on.
// - ACKs that wait while the socket is busy are merged, so ACKs cannot be counted. Every acknowledged
//   segment counts as one ACK, which is the same where each segment is acknowledged at once; while a loss
//   is being repaired an ACK counts as one, however far it jumps.
// - It sends skbs of several segments, as large as what it would pace in a millisecond; the pacing rate is
//   set as the kernel's own reno has it. An interface's `gso_max_segs 1` makes it one at a time.
// - By timestamps it may find a retransmission to have been unnecessary, and takes its own marks back.
//   The window stays reduced.
#ifndef NAGI_GLUE_CONTROL_H
#define NAGI_GLUE_CONTROL_H

#include "../arithmetic/window.h"
#include "scheme.h"

// What a scheme does when an ACK in recovery shows that another segment was lost.
#define NAGI_TAHOE 1  // slow start goes on; see tahoe.c
#define NAGI_RENO 2   // recovery is over, and the segment waits for three duplicate ACKs of its own
#define NAGI_NEWRENO 3  // retransmit it

enum nagi_phase {
  NAGI_OPEN,       // outside of recovery
  NAGI_RECOVERY,   // between three duplicate ACKs and the ACK of all that was sent before them
  NAGI_HOLDING,    // the same, and nothing may be sent
  NAGI_TIMED_OUT,  // until the kernel leaves its state Loss
};

/// Whether the kernel has entered recovery since on_ack was called last.
enum nagi_entered {
  NAGI_NOT_ENTERED,
  NAGI_ENTERED,
  NAGI_REDUCED,  // and the window had been reduced already, for a congestion mark
};

/// A connection's state, as far as all schemes have it.
struct nagi_control {
  struct nagi_window window;
  __u32 una;          // snd_una at the last ACK
  __u32 count;        // Reno: duplicate ACKs since recovery ended; Tahoe: partial ACKs
  __u32 sample_end;   // the sequence number that ends the round trip for NAGI_SAMPLE
  __u32 sampled_ms;   // when there was a NAGI_SAMPLE last
  __u8 kernel_state;  // TCP_CA_*
  __u8 phase;         // enum nagi_phase
  __u8 entered;       // enum nagi_entered
  __u8 started;       // on_start has been called; the kernel looks at the SYN's ACK before that
};

/// An ACK, as schemes see it.
struct nagi_ack {
  __u64 now_us;
  __u32 delivered;  // segments that have newly arrived, by duplicate ACKs also
  __u32 rtt_us;     // round trip measured by it; 0: none
  _Bool advances;   // it acknowledges new data
};

// What a scheme's file defines before it includes hooks.h; `own` is its part of the state.
struct nagi_own;
struct nagi_shared;
struct nagi_connection {
  struct nagi_control* control;
  struct nagi_own* own;
  struct nagi_shared* shared;  // with its packets, see packets.h; null: nothing is
  struct tcp_sock* tp;
};

NAGI_INLINE __u32 nagi_outstanding(const struct tcp_sock* tp) {
  return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

/// Whether the sender makes use of the window it has; it must not grow otherwise (RFC 7661). In slow
/// start it may be twice what was outstanding, as in the kernel.
NAGI_INLINE _Bool nagi_is_used(const struct tcp_sock* tp, const struct nagi_window* window) {
  if (nagi_is_window_limited(tp)) return 1;
  return window->cwnd < window->ssthresh && window->cwnd < 2 * tp->max_packets_out;
}

/// Reno's growth: slow start and congestion avoidance.
NAGI_INLINE void nagi_grow(const struct nagi_connection* to, __u32 segments) {
  nagi_window_grow(&to->control->window, segments, to->tp->snd_cwnd_clamp);
}

/// Reno's reduction: half of what is outstanding, for both.
NAGI_INLINE void nagi_halve(const struct nagi_connection* of) {
  struct nagi_window* window = &of->control->window;
  __u32 half = nagi_half(window->cwnd, of->tp->packets_out);

  nagi_window_set(window, half, half);
}

#endif
