// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// TCP Reno: fast retransmit and fast recovery of 4.3BSD-Reno and ns-2's Agent/TCP/Reno; RFC 2581, section 3.2.
//
//   three duplicate ACKs:   ssthresh = max(half of the outstanding segments, 2), retransmit;
//                           cwnd = ssthresh + 3, plus 1 for each further duplicate ACK
//   first ACK of new data:  fast recovery ends, whatever the ACK covers: cwnd = ssthresh
//   timeout:                ssthresh = max(half of the outstanding segments, 2), cwnd = 1
//
// So every further loss in the same window needs three more duplicate ACKs and halves the window again, or,
// more often, it waits for the retransmission timer. NewReno (RFC 6582; the kernel's own `reno`) removes this
// weakness.
//
// Two rules are those of today's kernel: a repeated timeout of the same segment keeps ssthresh (RFC 5681; 4.3BSD
// and ns-2 halve it again), and the window grows with the number of acknowledged segments, not with the number
// of ACKs. experiments/reno2001.c implements the old rules.
//
// The kernel forces one difference. At a partial ACK the kernel would retransmit the next lost segment. To
// prevent this, the scheme sets a window that allows no transmission until three more duplicate ACKs have
// arrived. Reno could send new segments in that time if its halved window had room, which is rare.
// glue/control.h lists the differences that all schemes share.
#include "glue/scheme.h"

#include "glue/control.h"
#include "glue/loss_is_congestion.h"
#include "glue/reno_growth.h"
#include "glue/window_alone.h"

NAGI_PARAMETER(cwnd_after_rto, 1, 1, 1000, "segments", "window after a timeout");

#define NAGI_RECOVERY_OF NAGI_RENO

NAGI_INLINE void own_congestion(const struct nagi_connection* connection) {
  nagi_halve(connection);
}

NAGI_INLINE enum nagi_verdict own_timeout(const struct nagi_connection* connection) {
  own_congestion(connection);
  nagi_window_set(&connection->control->window, cwnd_after_rto,
                  connection->control->window.ssthresh);
  return NAGI_CONGESTION;
}

#include "glue/hooks.h"

NAGI_SCHEME(reno);
