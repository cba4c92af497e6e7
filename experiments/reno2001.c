// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// Reno as it ran on hosts of 2001, for tcp-real-2001.yaml. It is nagi's reno (hosts/tcp/reno.c) with two
// differences:
//
//   again = 1:  a repeated timeout of the same segment lowers ssthresh again, to two segments, as in 4.3BSD and
//               ns-2. RFC 5681 (2009) keeps ssthresh.
//   acked = 2:  an ACK of new data stands for two segments, so the window grows half as fast. This models
//               delayed ACKs (RFC 1122) with a window that grows per ACK, not per byte.
//
// The receiver need not delay its ACKs for this. Retransmissions are those of nagi's reno.
#include "glue/scheme.h"

#include "glue/control.h"
#include "glue/loss_is_congestion.h"

NAGI_PARAMETER(cwnd_after_rto, 2, 1, 1000, "segments", "window after a timeout");
NAGI_PARAMETER(again, 1, 0, 1, "", "1: a repeated timeout lowers ssthresh again");
NAGI_PARAMETER(acked, 2, 1, 2, "segments", "that an ACK stands for");

#define NAGI_RECOVERY_OF NAGI_RENO

struct nagi_own {
  __u32 ssthresh;  // set by the last timeout and not applied yet; otherwise 0
  __u32 rest;      // acknowledged segments that do not make up an ACK yet
};

NAGI_INLINE void own_start(const struct nagi_connection* connection) { (void)connection; }

// Apply the threshold at the next ACK, because at a repeated timeout hooks.h ignores the scheme's threshold.
NAGI_INLINE void own_ack(const struct nagi_connection* connection, const struct nagi_ack* ack) {
  if (!ack->advances || connection->own->ssthresh == 0) return;
  connection->control->window.ssthresh = connection->own->ssthresh;
  connection->own->ssthresh = 0;
}

NAGI_INLINE void own_grow(const struct nagi_connection* connection, __u32 segments) {
  connection->own->rest += segments;
  nagi_grow(connection, connection->own->rest / acked);
  connection->own->rest %= acked;
}

NAGI_INLINE void own_congestion(const struct nagi_connection* connection) { nagi_halve(connection); }

NAGI_INLINE enum nagi_verdict own_timeout(const struct nagi_connection* connection) {
  __u32 half = nagi_half(connection->control->window.cwnd, connection->tp->packets_out);

  nagi_window_set(&connection->control->window, cwnd_after_rto, half);
  if (again) connection->own->ssthresh = half;
  return NAGI_CONGESTION;
}

NAGI_INLINE void own_describe(const struct nagi_connection* connection, struct nagi_event* event) {
  (void)connection;
  (void)event;
}

#include "glue/hooks.h"

NAGI_SCHEME(reno2001);
