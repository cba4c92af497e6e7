// SPDX-License-Identifier: Apache-2.0
//
// What else may happen to a packet that the channel did not lose.
#pragma once

#include <cstdint>

#include "base/interface.hpp"
#include "model/packet.hpp"
#include "model/random.hpp"

namespace nagi::model {

/// A packet that will arrive.
struct Arrival {
  Packet packet;
  Instant at;
  bool keeps_order = true;  // not if it is held back on purpose
  unsigned copies = 0;      // that arrive with it
};

class Effect : public Interface {
 public:
  /// `index` counts the packets.
  virtual void apply(std::uint64_t index, Arrival& arrival) const = 0;
};

}  // namespace nagi::model
