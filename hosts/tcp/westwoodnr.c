// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// TCP WestwoodNR: Westwood's window and estimate (glue/westwood.h) with NewReno's recovery (RFC 6582), as
// the authors' ns-2 module has it (Agent/TCP/WestwoodNR), and as Koo, Mun, Choo compare with it
// ("Sender-Based TCP Scheme for Improving Performance in Wireless Environment", ICCS 2007).
//
// The kernel's own recovery without SACK is NewReno's; nothing is forced but what glue/control.h lists.
#include "glue/scheme.h"

#include "glue/loss_is_congestion.h"
#include "glue/westwood.h"

#define NAGI_RECOVERY_OF NAGI_NEWRENO

NAGI_INLINE void own_describe(const struct nagi_connection* of, struct nagi_event* event) {
  westwood_describe(of, event);
}

#include "glue/hooks.h"

NAGI_SCHEME(westwoodnr);
