// SPDX-License-Identifier: Apache-2.0
//
// What a model of losses on the channel is. It is asked about one transmission after the other, in
// order. Per-packet models decide by the index, timed models by the instants, so the same arrivals
// always give the same losses.
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

class LossModel : public Interface {
 public:
  /// `index` counts the transmissions that were asked about.
  [[nodiscard]] virtual bool loses(std::uint64_t index, const Transmission& transmission) = 0;
};

/// The direction that a model is of.
struct LossContext {
  std::optional<Bitrate> rate;  // if it is constant
  Bytes overhead;               // framing, a packet
  Stream draws;
  Stream state_draws;
  Instant from{};        // timed models begin here
  ChannelKey channel{};  // of fading and shadowing
};

}  // namespace nagi::model
