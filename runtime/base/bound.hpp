// SPDX-License-Identifier: Apache-2.0
//
// The bounds of a number in a configuration.
#pragma once

namespace nagi {

/// The smallest and the largest accepted value.
template <class Value>
struct Bound {
  Value minimum;
  Value maximum;
};

}  // namespace nagi
