// SPDX-License-Identifier: Apache-2.0
//
// What every scheme of rate adaptation has in common.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.hpp"
#include "model/packet.hpp"
#include "model/random.hpp"

namespace nagi::model {

/// A modulation with a code rate, as the link model knows it.
struct Mode {
  Bitrate rate;    // at which the packet's bits are carried
  Bytes overhead;  // what a transmission has beside its packet, as bytes at that rate
  /// How long a transmission takes, rounded up to a nanosecond.
  [[nodiscard]] Duration air_time(Bytes packet) const {
    const auto bits = static_cast<unsigned __int128>((packet + overhead).count) * 8;
    const unsigned __int128 rounded = bits * 1'000'000'000 + rate.bits_per_second - 1;
    return Duration{static_cast<std::int64_t>(rounded / rate.bits_per_second)};
  }
};

class AdaptationModel {
 public:
  AdaptationModel() = default;
  AdaptationModel(const AdaptationModel&) = delete;
  AdaptationModel& operator=(const AdaptationModel&) = delete;
  virtual ~AdaptationModel() = default;

  /// The mode for a transmission that starts at `at`; `attempt` counts those of its packet from 1,
  /// `number` all of the direction. Instants never decrease.
  virtual std::size_t choose(Instant at, unsigned attempt, std::uint64_t number) = 0;
  /// What became of an earlier one becomes known at `at`.
  virtual void learn(const Transmission& transmission, Instant at) = 0;
};

}  // namespace nagi::model
