// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// TCP Reno: fast retransmit and fast recovery of 4.3BSD-Reno and ns-2's Agent/TCP/Reno; RFC 2581, section 3.2.
//
//   three duplicate ACKs:  ssthresh = max(half of what is outstanding, 2), retransmit;
//                          cwnd = ssthresh + 3, and one more for each further duplicate ACK
//   the first ACK of new data, whatever it covers, ends fast recovery: cwnd = ssthresh
//   a timeout:             the same ssthresh, cwnd = 1
//
// So every further loss in the same window waits for three duplicate ACKs of its own and halves again, or,
// more often, for the retransmission timer. That is what NewReno (RFC 6582; the kernel's own `reno`)
// mended.
//
// Two rules are of today's kernel: a timer that goes off again for the same segment keeps ssthresh
// (RFC 5681; 4.3BSD and ns-2 halve again), and the window grows by the segments that are acknowledged, not by
// ACKs. experiments/reno2001.c has the old ones.
//
// What the kernel forces: it would send the next lost segment at the partial ACK. It is kept from that by
// a window that allows nothing, until three more duplicate ACKs have come. Reno itself might send new
// segments in that time, if its halved window had room; it seldom has. The rest is in glue/control.h.
#include "glue/scheme.h"

#include "glue/control.h"
#include "glue/loss_is_congestion.h"
#include "glue/reno_growth.h"
#include "glue/window_alone.h"

NAGI_PARAMETER(cwnd_after_rto, 1, 1, 1000, "segments", "window after a timeout");

#define NAGI_RECOVERY_OF NAGI_RENO

NAGI_INLINE void own_congestion(const struct nagi_connection* of) { nagi_halve(of); }

NAGI_INLINE enum nagi_verdict own_timeout(const struct nagi_connection* of) {
  own_congestion(of);
  nagi_window_set(&of->control->window, cwnd_after_rto, of->control->window.ssthresh);
  return NAGI_CONGESTION;
}

#include "glue/hooks.h"

NAGI_SCHEME(reno);
