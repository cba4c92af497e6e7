// SPDX-License-Identifier: Apache-2.0
//
// Rate adaptation: in which mode (modulation and code rate) a sender transmits. It knows what the
// far end's feedback says of earlier transmissions, no sooner than that is there. A scheme of its
// own file is added to AdaptationScheme.
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
  /// For a replay, in which no radio measures: the SNR of each transmission, by its number.
  std::vector<std::int16_t> recorded_snr;
};

class RateAdaptation {
 public:
  RateAdaptation(const RateAdaptationConfig& config, Stream draws);

  /// The mode of a transmission that starts at `at`, the last one of its packet being `attempt`
  /// - 1.
  [[nodiscard]] std::uint8_t choose(Instant at, unsigned attempt, std::uint64_t number);
  [[nodiscard]] const Mode& mode(std::uint8_t index) const { return modes_[index]; }
  /// The sender knows at `known` what became of a transmission. In the order of `known`.
  void report(const Transmission& transmission, Instant known);

 private:
  struct Report {
    Transmission transmission;
    Instant known;
  };

  std::vector<Mode> modes_;
  std::vector<std::int16_t> recorded_snr_;
  std::unique_ptr<AdaptationModel> scheme_;
  std::deque<Report> reports_;  // that are still on their way
};

}  // namespace nagi::model
