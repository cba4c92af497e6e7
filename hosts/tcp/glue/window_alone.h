// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// `struct nagi_own`, own_start(), own_ack() and own_describe() of a scheme whose state is its window
// alone: it measures nothing, and there is nothing more to say of it.
#ifndef NAGI_GLUE_WINDOW_ALONE_H
#define NAGI_GLUE_WINDOW_ALONE_H

#include "control.h"

struct nagi_own {};

NAGI_INLINE void own_start(const struct nagi_connection* of) { (void)of; }

NAGI_INLINE void own_ack(const struct nagi_connection* of, const struct nagi_ack* ack) {
  (void)of;
  (void)ack;
}

NAGI_INLINE void own_describe(const struct nagi_connection* of, struct nagi_event* event) {
  (void)of;
  (void)event;
}

#endif
