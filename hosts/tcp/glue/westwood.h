// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// What the schemes of Westwood's family share: Mascolo, Casetti, Gerla, Sanadidi, Wang, "TCP Westwood",
// MobiCom 2001. The estimate (section 2) is in arithmetic/bandwidth.h; by it (section 3):
//
//   three duplicate ACKs:  ssthresh = bhat x RTTmin / segment size; if cwnd > ssthresh: cwnd = ssthresh
//   a timeout:             ssthresh = the same, but at least 2; cwnd = 1
//
// As in the authors' ns-2 module, ssthresh is at least 2 after duplicate ACKs, too. What an ACK says to
// have arrived (section 2.1: one segment for a duplicate ACK, and from what a later ACK covers those
// segments are taken off) the kernel counts in the same way.
#ifndef NAGI_GLUE_WESTWOOD_H
#define NAGI_GLUE_WESTWOOD_H

#include "../arithmetic/bandwidth.h"
#include "control.h"
#include "reno_growth.h"

NAGI_PARAMETER(tau, 500, 50, 10000, "ms", "time constant of the bandwidth filter");
NAGI_PARAMETER(spacing, 2000, 1, 50000, "us", "least time between two samples of the bandwidth");
NAGI_PARAMETER(cwnd_after_rto, 1, 1, 1000, "segments", "window after a timeout");

struct nagi_own {
  struct nagi_bandwidth bandwidth;
  __u32 rtt_us;      // as measured last; 0: not yet
  __u32 min_rtt_us;  // RTTmin
};

NAGI_INLINE void own_start(const struct nagi_connection* of) { (void)of; }

NAGI_INLINE void own_ack(const struct nagi_connection* of, const struct nagi_ack* ack) {
  struct nagi_own* own = of->own;

  if (ack->rtt_us) {
    own->rtt_us = ack->rtt_us;
    if (own->min_rtt_us == 0 || ack->rtt_us < own->min_rtt_us) own->min_rtt_us = ack->rtt_us;
  }
  nagi_bandwidth_ack(&own->bandwidth, ack->now_us, ack->delivered * of->tp->mss_cache, tau * 1000,
                     spacing);
}

NAGI_INLINE __u32 westwood_threshold(const struct nagi_connection* of) {
  __u32 window = nagi_bandwidth_window(&of->own->bandwidth, of->own->min_rtt_us, of->tp->mss_cache);

  return nagi_max(window, NAGI_MIN_THRESHOLD);
}

NAGI_INLINE void own_congestion(const struct nagi_connection* of) {
  struct nagi_window* window = &of->control->window;
  __u32 threshold = westwood_threshold(of);

  nagi_window_set(window, nagi_min(window->cwnd, threshold), threshold);
}

NAGI_INLINE enum nagi_verdict own_timeout(const struct nagi_connection* of) {
  nagi_window_set(&of->control->window, cwnd_after_rto, westwood_threshold(of));
  return NAGI_CONGESTION;
}

NAGI_INLINE void westwood_describe(const struct nagi_connection* of, struct nagi_event* event) {
  const struct nagi_own* own = of->own;

  event->bandwidth = own->bandwidth.rate;
  event->rtt_us = own->rtt_us;
  event->min_rtt_us = own->min_rtt_us;
}

#endif
