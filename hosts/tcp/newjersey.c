// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// TCP New Jersey: Xu, Tian, Ansari, "Improving TCP Performance in Integrated Wireless Communications
// Networks", Computer Networks 47(2), 2005; TCP-Jersey: the same authors, IEEE JSAC 22(4), 2004.
//
// The estimate R of the available bandwidth is in arithmetic/arrival_rate.h. Routers warn of congestion:
// they mark all packets while their averaged queue is over a threshold (`mark:` of a link). By both,
//
//   ownd = RTTmin x R / segment size, but at least 2
//   a marked ACK:                       cwnd = ssthresh = ownd, at most once a round trip
//   three duplicate ACKs with a mark:   the same, and retransmit
//   three duplicate ACKs without one:   the channel lost the segment: retransmit, change nothing
//   a timeout:                          ssthresh = ownd, cwnd = 1
//
// RTT in the filter is the sender's smoothed RTT ("TCP's estimation of the end-to-end RTT delay"). Between
// losses and marks the window grows as Reno's; recovery is NewReno's.
//
// What the kernel forces: marks are ECN's (RFC 3168). The receiver repeats the echo until the sender has
// said that it reduced (CWR); the kernel hears one mark a round trip, also one that comes with duplicate
// ACKs. Without timestamps (RFC 7323) the instants are those at which ACKs come back, as in TCP-Jersey.
// The rest is in glue/control.h.
#include "glue/scheme.h"

#include "arithmetic/arrival_rate.h"
#include "glue/control.h"
#include "glue/reno_growth.h"

NAGI_PARAMETER(tick, 1000, 1, 1000000, "us", "tick of the receiver's timestamps; Linux has 1 ms");
NAGI_PARAMETER(cwnd_after_rto, 1, 1, 1000, "segments", "window after a timeout");

#define NAGI_RECOVERY_OF NAGI_NEWRENO

struct nagi_own {
  struct nagi_arrival_rate bandwidth;
  __u32 rtt_us;      // as measured last; 0: not yet
  __u32 min_rtt_us;  // RTTmin
};

NAGI_INLINE void own_start(const struct nagi_connection* of) { (void)of; }

NAGI_INLINE void own_ack(const struct nagi_connection* of, const struct nagi_ack* ack) {
  struct nagi_own* own = of->own;
  const struct tcp_sock* tp = of->tp;
  __u32 bytes = ack->delivered * tp->mss_cache;
  __u32 rtt_us = nagi_max(tp->srtt_us >> 3, 1);

  if (ack->rtt_us) {
    own->rtt_us = ack->rtt_us;
    if (own->min_rtt_us == 0 || ack->rtt_us < own->min_rtt_us) own->min_rtt_us = ack->rtt_us;
  }
  if (nagi_has_timestamp(tp))
    nagi_arrival_rate_ack(&own->bandwidth, tp->rx_opt.rcv_tsval, bytes, rtt_us, tick);
  else
    nagi_arrival_rate_ack(&own->bandwidth, ack->now_us, bytes, rtt_us, 1);
}

/// ownd, in segments.
NAGI_INLINE __u32 available_window(const struct nagi_connection* of) {
  const struct nagi_own* own = of->own;
  __u32 segment = of->tp->mss_cache;

  if (segment == 0) return NAGI_MIN_THRESHOLD;
  return nagi_max(own->bandwidth.rate * own->min_rtt_us / 1000000 / segment, NAGI_MIN_THRESHOLD);
}

NAGI_INLINE void own_congestion(const struct nagi_connection* of) {
  __u32 window = available_window(of);

  nagi_window_set(&of->control->window, window, window);
}

NAGI_INLINE enum nagi_verdict own_duplicates(const struct nagi_connection* of) {
  (void)of;  // with a mark the window has been set: own_congestion()
  return NAGI_CHANNEL;
}

NAGI_INLINE enum nagi_verdict own_timeout(const struct nagi_connection* of) {
  nagi_window_set(&of->control->window, cwnd_after_rto, available_window(of));
  return NAGI_CONGESTION;
}

NAGI_INLINE void own_describe(const struct nagi_connection* of, struct nagi_event* event) {
  const struct nagi_own* own = of->own;

  event->bandwidth = own->bandwidth.rate;
  event->rtt_us = own->rtt_us;
  event->min_rtt_us = own->min_rtt_us;
}

#include "glue/hooks.h"

NAGI_SCHEME(newjersey);
