// SPDX-License-Identifier: Apache-2.0
//
// Rate adaptation: the choice of the mode (modulation and code rate) of each transmission. The
// choice depends on the receiver's feedback about earlier transmissions, as far as this feedback
// has arrived. Add a new scheme to AdaptationScheme.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <variant>
#include <vector>

#include "model/adaptation/minstrel.hpp"
#include "model/adaptation/scheme.hpp"
#include "model/adaptation/snr_table.hpp"
#include "model/packet.hpp"

namespace nagi::model {

using AdaptationScheme = std::variant<SnrTable, Minstrel>;

struct RateAdaptationConfig {
  AdaptationScheme scheme;
  std::vector<Mode> modes;  // at least one, in the order of their rates
  /// The SNR of each transmission in 0.01 dB, indexed by the number of the transmission. Only
  /// replays have these values, because no radio measures the SNR there.
  std::vector<std::int16_t> recorded_snr;
};

/// Chooses modes from the feedback of a receiver.
class RateAdaptation {
 public:
  RateAdaptation(const RateAdaptationConfig& config, Stream draws);

  /// Return the mode of a transmission that starts at `at`: attempt number `attempt` of its packet,
  /// and transmission `number` of the direction.
  [[nodiscard]] std::uint8_t choose(Instant at, unsigned attempt, std::uint64_t number);
  [[nodiscard]] const Mode& mode(std::uint8_t index) const { return modes_[index]; }
  /// Report the outcome of a transmission; `known_at` is the instant at which the sender learns it.
  /// Call this in the order of `known_at`.
  void report(const Transmission& transmission, Instant known_at);

 private:
  struct Report {
    Transmission transmission;
    Instant known_at;
  };

  std::vector<Mode> modes_;
  std::vector<std::int16_t> recorded_snr_;
  std::unique_ptr<AdaptationModel> scheme_;
  std::deque<Report> reports_;  // feedback that has not arrived yet
};

}  // namespace nagi::model
