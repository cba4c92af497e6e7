// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// Code that the schemes of Westwood's family share: Mascolo, Casetti, Gerla, Sanadidi, Wang, "TCP
// Westwood", MobiCom 2001. The bandwidth estimate bhat (section 2) is in arithmetic/bandwidth.h. It sets the
// window (section 3):
//
//   three duplicate ACKs:  ssthresh = bhat x RTTmin / segment size; if cwnd > ssthresh: cwnd = ssthresh
//   timeout:               ssthresh = bhat x RTTmin / segment size, but at least 2; cwnd = 1
//
// As in the authors' ns-2 module, ssthresh is at least 2 after duplicate ACKs as well. Section 2.1 counts one
// arrived segment per duplicate ACK and subtracts these segments from those that a later ACK covers. The kernel
// counts in the same way.
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
  __u32 rtt_us;      // latest measurement; 0 before the first one
  __u32 min_rtt_us;  // RTTmin
};

NAGI_INLINE void own_start(const struct nagi_connection* connection) { (void)connection; }

NAGI_INLINE void own_ack(const struct nagi_connection* connection, const struct nagi_ack* ack) {
  struct nagi_own* own = connection->own;

  if (ack->rtt_us) {
    own->rtt_us = ack->rtt_us;
    if (own->min_rtt_us == 0 || ack->rtt_us < own->min_rtt_us) own->min_rtt_us = ack->rtt_us;
  }
  nagi_bandwidth_ack(&own->bandwidth, ack->now_us, ack->delivered * connection->tp->mss_cache,
                     tau * 1000, spacing);
}

/// Return bhat x RTTmin in segments, but at least 2.
NAGI_INLINE __u32 westwood_threshold(const struct nagi_connection* connection) {
  __u32 window = nagi_bandwidth_window(&connection->own->bandwidth, connection->own->min_rtt_us,
                                       connection->tp->mss_cache);

  return nagi_max(window, NAGI_MIN_THRESHOLD);
}

NAGI_INLINE void own_congestion(const struct nagi_connection* connection) {
  struct nagi_window* window = &connection->control->window;
  __u32 threshold = westwood_threshold(connection);

  nagi_window_set(window, nagi_min(window->cwnd, threshold), threshold);
}

NAGI_INLINE enum nagi_verdict own_timeout(const struct nagi_connection* connection) {
  nagi_window_set(&connection->control->window, cwnd_after_rto, westwood_threshold(connection));
  return NAGI_CONGESTION;
}

NAGI_INLINE void westwood_describe(const struct nagi_connection* connection,
                                   struct nagi_event* event) {
  const struct nagi_own* own = connection->own;

  event->bandwidth = own->bandwidth.rate;
  event->rtt_us = own->rtt_us;
  event->min_rtt_us = own->min_rtt_us;
}

#endif
