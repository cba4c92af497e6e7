// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// own_grow() for a scheme whose window grows as in Reno: slow start and congestion avoidance
// (arithmetic/window.h).
#ifndef NAGI_GLUE_RENO_GROWTH_H
#define NAGI_GLUE_RENO_GROWTH_H

#include "control.h"

NAGI_INLINE void own_grow(const struct nagi_connection* connection, __u32 segments) {
  nagi_grow(connection, segments);
}

#endif
