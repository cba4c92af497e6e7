// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// TCP Tahoe: Jacobson, "Congestion Avoidance and Control", SIGCOMM 1988, with fast retransmit. Loss recovery is
// that of 4.3BSD-Tahoe and of ns-2's Agent/TCP; repeated timeouts and the growth of the window are those of the
// kernel (see reno.c). There is no fast recovery:
//
//   three duplicate ACKs, or a timeout:  ssthresh = max(half of the outstanding segments, 2), cwnd = 1,
//                                        then slow start from the lost segment
//
// TCP-Real's Tahoe restarts at two segments; the parameter `cwnd_after_loss` sets this.
//
// The kernel forces one difference. Tahoe restarts at the lost segment and sends all segments after it again
// (go back N): it loses time with segments that had arrived, but several losses in one window cost it little.
// The kernel goes back N only after a timeout. After three duplicate ACKs it retransmits the lost segment, then
// one more segment at each partial ACK, that is one per round trip, and new segments in between if the window
// allows. One or two losses cost the same as in Tahoe. If the second partial ACK shows that the repair of the
// remaining losses would take longer than the retransmission timer, the scheme sends nothing until the timer
// expires. The kernel then goes back N, with a window of `cwnd_after_loss` and the ssthresh of the loss. This
// costs a pause of one timeout, which Tahoe does not make. The first partial ACK does not decide, because
// duplicate ACKs that the kernel merges (see control.h) look like further losses, and most windows lose only one
// or two segments. glue/control.h lists the differences that all schemes share.
#include "glue/scheme.h"

#include "glue/control.h"
#include "glue/loss_is_congestion.h"
#include "glue/reno_growth.h"
#include "glue/window_alone.h"

NAGI_PARAMETER(cwnd_after_loss, 1, 1, 1000, "segments", "window after a loss");

#define NAGI_RECOVERY_OF NAGI_TAHOE

NAGI_INLINE void own_congestion(const struct nagi_connection* connection) {
  nagi_halve(connection);
  nagi_window_set(&connection->control->window, cwnd_after_loss,
                  connection->control->window.ssthresh);
}

NAGI_INLINE enum nagi_verdict own_timeout(const struct nagi_connection* connection) {
  own_congestion(connection);
  return NAGI_CONGESTION;
}

#include "glue/hooks.h"

NAGI_SCHEME(tahoe);
