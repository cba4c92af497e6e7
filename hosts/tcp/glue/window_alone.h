// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// `struct nagi_own`, own_start(), own_ack() and own_describe() for a scheme that has no state except its window. The
// scheme measures nothing and adds nothing to events.
#ifndef NAGI_GLUE_WINDOW_ALONE_H
#define NAGI_GLUE_WINDOW_ALONE_H

#include "control.h"

struct nagi_own {};

NAGI_INLINE void own_start(const struct nagi_connection* connection) { (void)connection; }

NAGI_INLINE void own_ack(const struct nagi_connection* connection, const struct nagi_ack* ack) {
  (void)connection;
  (void)ack;
}

NAGI_INLINE void own_describe(const struct nagi_connection* connection, struct nagi_event* event) {
  (void)connection;
  (void)event;
}

#endif
