// SPDX-License-Identifier: Apache-2.0
//
// The interface of models of losses on the channel. A model depends only on the index of each
// transmission, or on its start and end. So equal arrivals always have equal losses.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/interface.hpp"
#include "base/units.hpp"
#include "model/channel_key.hpp"
#include "model/packet.hpp"
#include "model/random.hpp"

namespace nagi::model {

/// A model of losses.
class LossModel : public Interface {
 public:
  /// Return whether a transmission is lost. Callers pass all transmissions in order; `index` is
  /// their number, from 0.
  [[nodiscard]] virtual bool loses(std::uint64_t index, const Transmission& transmission) = 0;
};

/// The properties of a direction that loss models need.
struct LossContext {
  std::optional<Bitrate> rate;  // rate of the direction, if it is constant
  Bytes overhead;               // framing per packet
  Stream draws;                 // decide whether a packet is lost
  Stream state_draws;           // decide when a channel changes its state
  Instant from{};               // instant at which models that depend on time begin
  ChannelKey channel{};         // key of fading and shadowing
};

}  // namespace nagi::model
