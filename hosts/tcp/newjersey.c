// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// TCP New Jersey: Xu, Tian, Ansari, "Improving TCP Performance in Integrated Wireless Communications
// Networks", Computer Networks 47(2), 2005; TCP-Jersey: the same authors, IEEE JSAC 22(4), 2004.
//
// The estimate R of the available bandwidth is computed in arithmetic/arrival_rate.h. Routers warn of
// congestion: they mark all packets while their average queue length exceeds a threshold (`mark:` of a link).
// The sender combines the estimate and the marks:
//
//   ownd = RTTmin x R / segment size, but at least 2
//   marked ACK:                           cwnd = ssthresh = ownd, at most once per round trip
//   three duplicate ACKs, marked:         cwnd = ssthresh = ownd, and retransmit
//   three duplicate ACKs, not marked:     the channel lost the segment: retransmit, keep the window
//   timeout:                              ssthresh = ownd, cwnd = 1
//
// RTT in the filter is the sender's smoothed RTT ("TCP's estimation of the end-to-end RTT delay"). Between
// losses and marks the window grows as in Reno. Recovery is that of NewReno.
//
// The kernel forces two differences. Marks are those of ECN (RFC 3168): the receiver repeats the echo until the
// sender confirms its reduction (CWR), and the kernel reports one mark per round trip, also if it arrives with
// duplicate ACKs. Without timestamps (RFC 7323) the filter uses the times at which ACKs return, as in
// TCP-Jersey. glue/control.h lists the differences that all schemes share.
#include "glue/scheme.h"

#include "arithmetic/arrival_rate.h"
#include "glue/control.h"
#include "glue/reno_growth.h"

NAGI_PARAMETER(tick, 1000, 1, 1000000, "us", "tick of the receiver's timestamps; Linux has 1 ms");
NAGI_PARAMETER(cwnd_after_rto, 1, 1, 1000, "segments", "window after a timeout");

#define NAGI_RECOVERY_OF NAGI_NEWRENO

struct nagi_own {
  struct nagi_arrival_rate bandwidth;
  __u32 rtt_us;      // latest measurement; 0 before the first one
  __u32 min_rtt_us;  // RTTmin
};

NAGI_INLINE void own_start(const struct nagi_connection* connection) { (void)connection; }

NAGI_INLINE void own_ack(const struct nagi_connection* connection, const struct nagi_ack* ack) {
  struct nagi_own* own = connection->own;
  const struct tcp_sock* tp = connection->tp;
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

/// Return ownd, in segments.
NAGI_INLINE __u32 available_window(const struct nagi_connection* connection) {
  const struct nagi_own* own = connection->own;
  __u32 segment = connection->tp->mss_cache;

  if (segment == 0) return NAGI_MIN_THRESHOLD;
  return nagi_max(own->bandwidth.rate * own->min_rtt_us / 1000000 / segment, NAGI_MIN_THRESHOLD);
}

NAGI_INLINE void own_congestion(const struct nagi_connection* connection) {
  __u32 window = available_window(connection);

  nagi_window_set(&connection->control->window, window, window);
}

NAGI_INLINE enum nagi_verdict own_duplicates(const struct nagi_connection* connection) {
  (void)connection;  // if the ACKs carry a mark, own_congestion() has set the window already
  return NAGI_CHANNEL;
}

NAGI_INLINE enum nagi_verdict own_timeout(const struct nagi_connection* connection) {
  nagi_window_set(&connection->control->window, cwnd_after_rto, available_window(connection));
  return NAGI_CONGESTION;
}

NAGI_INLINE void own_describe(const struct nagi_connection* connection, struct nagi_event* event) {
  const struct nagi_own* own = connection->own;

  event->bandwidth = own->bandwidth.rate;
  event->rtt_us = own->rtt_us;
  event->min_rtt_us = own->min_rtt_us;
}

#include "glue/hooks.h"

NAGI_SCHEME(newjersey);
