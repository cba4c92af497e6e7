// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// own_duplicates() of a scheme that takes every loss for congestion; own_congestion() is the scheme's.
#ifndef NAGI_GLUE_LOSS_IS_CONGESTION_H
#define NAGI_GLUE_LOSS_IS_CONGESTION_H

#include "control.h"

NAGI_INLINE void own_congestion(const struct nagi_connection* of);

NAGI_INLINE enum nagi_verdict own_duplicates(const struct nagi_connection* of) {
  own_congestion(of);
  return NAGI_CONGESTION;
}

#endif
