// SPDX-License-Identifier: Apache-2.0
//
// The interface of effects on packets that the channel has not lost, such as corruption.
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
  bool keeps_order = true;  // false if an effect holds the packet back
  unsigned copies = 0;      // number of copies that arrive with it
};

/// An effect on packets.
class Effect : public Interface {
 public:
  /// Apply the effect to the arrival of packet number `index`.
  virtual void apply(std::uint64_t index, Arrival& arrival) const = 0;
};

}  // namespace nagi::model
