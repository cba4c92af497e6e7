// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// TCP WestwoodNR: Westwood's window and estimate (glue/westwood.h) with NewReno's recovery (RFC 6582), as in
// the authors' ns-2 module (Agent/TCP/WestwoodNR). Koo, Mun and Choo compare their scheme with this one
// ("Sender-Based TCP Scheme for Improving Performance in Wireless Environment", ICCS 2007).
//
// Without SACK the kernel's own recovery is that of NewReno. The kernel forces only the differences that
// glue/control.h lists.
#include "glue/scheme.h"

#include "glue/loss_is_congestion.h"
#include "glue/westwood.h"

#define NAGI_RECOVERY_OF NAGI_NEWRENO

NAGI_INLINE void own_describe(const struct nagi_connection* connection, struct nagi_event* event) {
  westwood_describe(connection, event);
}

#include "glue/hooks.h"

NAGI_SCHEME(westwoodnr);
