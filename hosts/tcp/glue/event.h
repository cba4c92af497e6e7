// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// Events that a scheme reports about a connection while it runs. The kernel's ring buffer carries one record
// per event to nagi-tcp, which writes it as a line of JSON.
#ifndef NAGI_GLUE_EVENT_H
#define NAGI_GLUE_EVENT_H

#include <linux/types.h>

enum nagi_event_kind {
  NAGI_STARTED = 1,       // the scheme controls the connection from now on
  NAGI_THREE_DUPLICATES,  // three duplicate ACKs arrived: the segment at `una` is retransmitted
  NAGI_PARTIAL_ACK,  // the ACK of a retransmission shows that the segment at `una` was also lost
  NAGI_TIMEOUT,      // the retransmission timer expired for the segment at `una`
  NAGI_CONGESTION_MARK,  // an ECN echo arrived, or a queue of this host is full
  NAGI_FALLBACK,         // the other end lacks a feature of the scheme, which continues as reno
  NAGI_SAMPLE,           // periodic state, at most once per round trip and once per 10 ms
};

/// The cause to which the scheme attributes a loss. The verdict on a loss also applies to the partial ACKs after it.
enum nagi_verdict {
  NAGI_NO_VERDICT,
  NAGI_CONGESTION,
  NAGI_CHANNEL,
  NAGI_UNDECIDED,
};

struct nagi_event {
  __u64 at_ns;        // CLOCK_MONOTONIC
  __u64 bandwidth;    // estimate, bytes per second; 0 if the scheme has no estimate
  __u32 una;          // first unacknowledged sequence number, as in the segments' headers
  __u32 next;         // first sequence number that was not sent yet
  __u32 flight;       // segments from una to next
  __u32 cwnd_before;  // segments
  __u32 cwnd;
  __u32 ssthresh_before;  // segments; 0x7fffffff before the first reduction
  __u32 ssthresh;
  __u32 rtt_us;         // measured by the scheme, or else the kernel's smoothed value
  __u32 min_rtt_us;     // 0 if the scheme does not measure it
  __u32 backlog_milli;  // Vegas's estimate, thousandths of a segment; 0 if the scheme has none
  __u16 local_port;
  __u16 remote_port;
  __u8 kind;     // enum nagi_event_kind
  __u8 verdict;  // enum nagi_verdict
  __u16 unused;
};

#endif
