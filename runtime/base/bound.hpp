// SPDX-License-Identifier: Apache-2.0
//
// The bounds of a number that a configuration gives.
#pragma once

namespace nagi {

/// The values that are accepted, both ends included.
template <class Value>
struct Bound {
  Value minimum;
  Value maximum;
};

}  // namespace nagi
