// SPDX-License-Identifier: Apache-2.0
//
// The interface of schemes for rate adaptation.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.hpp"
#include "model/packet.hpp"
#include "model/random.hpp"

namespace nagi::model {

/// A modulation with a code rate.
struct Mode {
  Bitrate rate;    // rate of the packet's bits
  Bytes overhead;  // duration of a transmission minus that of its packet, in bytes at `rate`
  /// Return the duration of a transmission, rounded up to a nanosecond.
  [[nodiscard]] Duration air_time(Bytes packet) const {
    const auto bits = static_cast<unsigned __int128>((packet + overhead).count) * 8;
    const unsigned __int128 rounded = bits * 1'000'000'000 + rate.bits_per_second - 1;
    return Duration{static_cast<std::int64_t>(rounded / rate.bits_per_second)};
  }
};

/// A scheme for rate adaptation.
class AdaptationModel {
 public:
  AdaptationModel() = default;
  AdaptationModel(const AdaptationModel&) = delete;
  AdaptationModel& operator=(const AdaptationModel&) = delete;
  virtual ~AdaptationModel() = default;

  /// Return the mode of a transmission that starts at `at`. `attempt` is its number among the
  /// transmissions of its packet, from 1; `number` is its number among those of the direction.
  /// Instants never decrease.
  virtual std::size_t choose(Instant at, unsigned attempt, std::uint64_t number) = 0;
  /// Learn the outcome of an earlier transmission, whose feedback arrives at `at`.
  virtual void learn(const Transmission& transmission, Instant at) = 0;
};

}  // namespace nagi::model
