// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// TCP Westwood: Mascolo, Casetti, Gerla, Sanadidi, Wang, "TCP Westwood: Bandwidth Estimation for Enhanced
// Transport over Wireless Links", MobiCom 2001. The window and the estimate are in glue/westwood.h.
//
// Recovery is that of Reno, as in the authors' ns-2 module (Agent/TCP/Westwood): it ends at the first ACK of new
// data. reno.c also describes the difference that the kernel forces there. Linux's `westwood` is Westwood+, a
// later scheme that takes one sample per round trip (Grieco, Mascolo, ACM CCR 34(2), 2004).
#include "glue/scheme.h"

#include "glue/loss_is_congestion.h"
#include "glue/westwood.h"

#define NAGI_RECOVERY_OF NAGI_RENO

NAGI_INLINE void own_describe(const struct nagi_connection* connection, struct nagi_event* event) {
  westwood_describe(connection, event);
}

#include "glue/hooks.h"

NAGI_SCHEME(westwood);
