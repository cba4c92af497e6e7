// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// TCP Tahoe: Jacobson, "Congestion Avoidance and Control", SIGCOMM 1988, with fast retransmit; loss recovery as
// 4.3BSD-Tahoe and ns-2's Agent/TCP have it (repeated timeouts and the growth of the window are the kernel's,
// see reno.c). No fast recovery:
//
//   three duplicate ACKs, or a timeout:  ssthresh = max(half of what is outstanding, 2), cwnd = 1
//   then slow start from the segment that was lost
//
// TCP-Real's Tahoe restarts at two segments: the parameter `cwnd_after_loss`.
//
// What the kernel forces: Tahoe starts over at the lost segment and sends everything after it again (go
// back N); a duplicate of what had arrived costs it time, but several losses in a window cost it little.
// The kernel does that only after a timeout. After three duplicate ACKs it sends the lost segment, and one
// more at each partial ACK, a round trip apart, and in between new ones, as the window allows. One or two
// losses cost what they cost Tahoe. If the second partial ACK shows that to repair the rest would take
// longer than the retransmission timer, nothing is sent until that has gone off: the kernel then goes back
// N, from a window of `cwnd_after_loss` and with the ssthresh of the loss. This costs a pause of one timeout that
// Tahoe does not make. (Not at the first: duplicate ACKs that the kernel merges, see control.h, look like
// further losses, and most windows lose only one or two.) The rest is in glue/control.h.
#include "glue/scheme.h"

#include "glue/control.h"
#include "glue/loss_is_congestion.h"
#include "glue/reno_growth.h"
#include "glue/window_alone.h"

NAGI_PARAMETER(cwnd_after_loss, 1, 1, 1000, "segments", "window after a loss");

#define NAGI_RECOVERY_OF NAGI_TAHOE

NAGI_INLINE void own_congestion(const struct nagi_connection* of) {
  nagi_halve(of);
  nagi_window_set(&of->control->window, cwnd_after_loss, of->control->window.ssthresh);
}

NAGI_INLINE enum nagi_verdict own_timeout(const struct nagi_connection* of) {
  own_congestion(of);
  return NAGI_CONGESTION;
}

#include "glue/hooks.h"

NAGI_SCHEME(tahoe);
