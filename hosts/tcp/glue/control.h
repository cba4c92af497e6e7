// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// Code that all schemes share: when a window grows, which segments count as lost, and how a scheme makes the kernel
// send the segments that the scheme's paper would send.
//
// The kernel detects losses and counts segments (always without SACK here). Through cong_control a scheme sets
// the window after every ACK; so PRR (RFC 6937), which would spread a reduction over a round trip, does not
// run. `window` below is the scheme's cwnd as its paper defines it. The kernel's snd_cwnd is derived from it:
//
// - The kernel compares snd_cwnd with the number of outstanding segments, minus the duplicate ACKs and minus the
//   segments that it has marked lost. So the kernel itself "inflates" the window by one for each duplicate ACK,
//   and in fast recovery snd_cwnd is the deflated window.
// - The kernel sends a segment that is marked lost only while less than snd_cwnd is outstanding, and at the third
//   duplicate ACK snd_cwnd is half of this number. So the scheme allows one segment above the window when a
//   retransmission is due.
// - In recovery, at every ACK that does not end it, the kernel marks the first segment lost (NewReno, RFC 6582).
//   A scheme that must not retransmit then keeps snd_cwnd at the number of outstanding segments. The kernel
//   sends nothing in that time, because it would send the marked segment before any new one.
//
// The kernel differs from the papers in the following points, whatever the scheme does:
// - The kernel sends a new segment for each of the first two duplicate ACKs (limited transmit, RFC 3042), as ns-2
//   does by default.
// - In recovery, the kernel ignores duplicate ACKs whose acknowledgement number is exactly the end of the data that
//   was sent before recovery. If the first segment after this data is lost, only the retransmission timer detects
//   the loss.
// - After duplicate ACKs that the kernel cannot explain (because segments were sent twice), it waits for more than
//   three duplicate ACKs. The sysctls tcp_reordering = tcp_max_reordering = 3 prevent this.
// - When the retransmission timer expires, the kernel sends one segment. A larger window takes effect with the ACK
//   of this segment.
// - The kernel merges ACKs that wait while the socket is busy, so a scheme cannot count ACKs. Therefore every
//   acknowledged segment counts as one ACK. This is exact if the receiver acknowledges each segment at once. During
//   the repair of a loss, an ACK counts as one ACK, however many segments it acknowledges.
// - The kernel sends skbs of several segments, up to the amount that it would pace in one millisecond; the pacing
//   rate is that of the kernel's own reno. The interface option `gso_max_segs 1` limits an skb to one segment.
// - If timestamps show that a retransmission was unnecessary, the kernel removes its loss marks, but the window stays
//   reduced.
#ifndef NAGI_GLUE_CONTROL_H
#define NAGI_GLUE_CONTROL_H

#include "../arithmetic/window.h"
#include "scheme.h"

// Reactions of a scheme to an ACK in recovery that shows that another segment was lost.
#define NAGI_TAHOE 1    // slow start continues; see tahoe.c
#define NAGI_RENO 2     // recovery ends, and the segment waits for three more duplicate ACKs
#define NAGI_NEWRENO 3  // the scheme retransmits the segment

enum nagi_phase {
  NAGI_OPEN,       // not in recovery
  NAGI_RECOVERY,   // from three duplicate ACKs to the ACK of all data that was sent before them
  NAGI_HOLDING,    // in recovery, and the scheme allows no transmission
  NAGI_TIMED_OUT,  // from a timeout until the kernel leaves its state Loss
};

/// Records whether the kernel has entered recovery since the last call of nagi_on_ack.
enum nagi_entered {
  NAGI_NOT_ENTERED,
  NAGI_ENTERED,
  NAGI_REDUCED,  // entered, after a congestion mark had already reduced the window
};

/// The state of a connection that all schemes have.
struct nagi_control {
  struct nagi_window window;
  __u32 una;          // snd_una at the last ACK
  __u32 count;        // Reno: duplicate ACKs since recovery ended; Tahoe: partial ACKs
  __u32 sample_end;   // sequence number that ends the current round trip for NAGI_SAMPLE
  __u32 sampled_ms;   // time of the latest NAGI_SAMPLE
  __u8 kernel_state;  // TCP_CA_*
  __u8 phase;         // enum nagi_phase
  __u8 entered;       // enum nagi_entered
  __u8 started;       // nagi_on_start was called; the kernel processes the SYN's ACK before that
};

/// An ACK, as the kernel reports it to schemes.
struct nagi_ack {
  __u64 now_us;     // arrival time of the ACK
  __u32 delivered;  // segments that the ACK newly reports as arrived; a duplicate ACK counts as one
  __u32 rtt_us;     // round-trip time that the ACK measures; 0 if it measures none
  _Bool advances;   // true if the ACK acknowledges new data
};

// A scheme's file defines struct nagi_own and, if it processes packets, struct nagi_shared before it includes
// hooks.h.
struct nagi_own;
struct nagi_shared;
struct nagi_connection {
  struct nagi_control* control;  // the state that all schemes have
  struct nagi_own* own;          // the scheme's own state
  struct nagi_shared*
      shared;           // state that packets and congestion control share (packets.h), or null
  struct tcp_sock* tp;  // the kernel's state
};

/// Return the number of segments in flight, as the kernel counts them.
NAGI_INLINE __u32 nagi_outstanding(const struct tcp_sock* tp) {
  return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

/// Return whether the sender uses its window. If it does not, the window must not grow (RFC 7661). In slow start the
/// window may be twice the number of segments that were outstanding, as in the kernel.
NAGI_INLINE _Bool nagi_is_window_used(const struct tcp_sock* tp, const struct nagi_window* window) {
  if (nagi_is_window_limited(tp)) return 1;
  return window->cwnd < window->ssthresh && window->cwnd < 2 * tp->max_packets_out;
}

/// Grow the window as Reno does: slow start, then congestion avoidance.
NAGI_INLINE void nagi_grow(const struct nagi_connection* connection, __u32 segments) {
  nagi_window_grow(&connection->control->window, segments, connection->tp->snd_cwnd_clamp);
}

/// Set cwnd and ssthresh to half of the outstanding segments, as Reno does.
NAGI_INLINE void nagi_halve(const struct nagi_connection* connection) {
  struct nagi_window* window = &connection->control->window;
  __u32 half = nagi_half(window->cwnd, connection->tp->packets_out);

  nagi_window_set(window, half, half);
}

#endif
