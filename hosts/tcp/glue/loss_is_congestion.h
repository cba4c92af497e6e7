// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
//
// own_duplicates() for a scheme that treats every loss as congestion. The scheme defines own_congestion().
#ifndef NAGI_GLUE_LOSS_IS_CONGESTION_H
#define NAGI_GLUE_LOSS_IS_CONGESTION_H

#include "control.h"

NAGI_INLINE void own_congestion(const struct nagi_connection* connection);

NAGI_INLINE enum nagi_verdict own_duplicates(const struct nagi_connection* connection) {
  own_congestion(connection);
  return NAGI_CONGESTION;
}

#endif
