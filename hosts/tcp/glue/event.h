// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// What a scheme tells of a connection while it runs: one record an event, from the kernel's ring
// buffer to nagi-tcp, which writes it as a line of JSON.
#ifndef NAGI_GLUE_EVENT_H
#define NAGI_GLUE_EVENT_H

#include <linux/types.h>

enum nagi_event_kind {
  NAGI_STARTED = 1,       // the scheme has taken the connection over
  NAGI_THREE_DUPLICATES,  // three duplicate ACKs: the segment at `una` is sent again
  NAGI_PARTIAL_ACK,       // the ACK of a retransmission shows that `una` was lost, too
  NAGI_TIMEOUT,           // the retransmission timer has gone off for the segment at `una`
  NAGI_CONGESTION_MARK,   // an ECN echo, or a queue of this host that is full
  NAGI_FALLBACK,          // the other end lacks what the scheme needs; it goes on as reno
  NAGI_SAMPLE,            // nothing happened: the state, at most once a round trip and 10 ms
};

/// What the scheme takes the cause of a loss for. A partial ACK belongs to the loss before it.
enum nagi_verdict {
  NAGI_NO_VERDICT,
  NAGI_CONGESTION,
  NAGI_CHANNEL,
  NAGI_UNDECIDED,
};

struct nagi_event {
  __u64 at_ns;        // CLOCK_MONOTONIC
  __u64 bandwidth;    // estimate, bytes a second; 0: the scheme has none
  __u32 una;          // first sequence number not acknowledged, as in the segments' headers
  __u32 next;         // first one not sent yet
  __u32 flight;       // segments between the two
  __u32 cwnd_before;  // segments
  __u32 cwnd;
  __u32 ssthresh_before;  // segments; 0x7fffffff: none yet
  __u32 ssthresh;
  __u32 rtt_us;         // the scheme's own, or else the kernel's smoothed one
  __u32 min_rtt_us;     // 0: the scheme does not measure it
  __u32 backlog_milli;  // thousandths of a segment by Vegas's estimate; 0: the scheme has none
  __u16 local_port;
  __u16 remote_port;
  __u8 kind;     // enum nagi_event_kind
  __u8 verdict;  // enum nagi_verdict
  __u16 unused;
};

#endif
