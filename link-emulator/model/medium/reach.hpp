// SPDX-License-Identifier: Apache-2.0
//
// Who hears whom on a medium: at which stations a station's frames can be decoded, keep the air
// busy, or disturb others; from positions and ranges, from received powers, or from matrices.
//
// Ranges follow ns-2 (802_11 with TwoRayGround): a frame is decoded within the transmission range
// and senses up to the carrier-sense range. Powers are taken to fall with the fourth power of the
// distance. With a capture ratio, a frame survives what begins later and is weaker by that ratio.
// Without, anything within the interference range disturbs it.
//
// Powers in dBm follow a path-loss exponent. A receiver finds a frame's preamble where its power is
// above the sensitivity and its ratio to noise and all that disturbs it (SINR) is at least
// `preamble_db` when the frame begins. It then receives the frame if that ratio is never below the
// capture ratio. Otherwise the reception ends in an error, and the station waits for EIFS.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "base/units.hpp"

namespace nagi::model {

using StationIndex = std::uint32_t;

struct Position {  // m
  double x = 0;
  double y = 0;
};

struct RangesReach {  // m
  double transmission = 250;
  double carrier_sense = 550;
  double interference = 550;
  std::optional<double> capture_db;
};

struct SinrReach {
  double tx_power_dbm = 0;
  double path_loss_exponent = 0;
  double reference_loss_db = 0;  // at 1 m
  double noise_dbm = 0;
  double sensitivity_dbm = 0;
  double carrier_sense_dbm = 0;
  double capture_db = 0;
  double preamble_db = 0;  // at most capture_db
};

/// Of each sender at each receiver.
struct MatrixReach {
  std::vector<std::vector<bool>> decodes;
  std::vector<std::vector<bool>> senses;
  std::vector<std::vector<bool>> interferes;
};

using ReachConfig = std::variant<RangesReach, SinrReach, MatrixReach>;

/// What a station hears of another one.
struct Heard {
  StationIndex by = 0;
  bool decodes = false;
  bool senses = false;
  bool interferes = false;
  double power = 0;  // relative, or mW
};

class Reach {
 public:
  Reach(ReachConfig config, std::vector<Position> positions);

  /// All that hear anything of `sender`, in the order of their numbers.
  [[nodiscard]] const std::vector<Heard>& of(StationIndex sender) const { return heard_[sender]; }
  [[nodiscard]] Heard between(StationIndex sender, StationIndex receiver) const;
  void move(StationIndex station, Position to);

  /// How much stronger than a single disturbance that begins later a frame must be; nothing: any
  /// disturbance is one too many.
  [[nodiscard]] std::optional<double> capture_ratio() const { return capture_ratio_; }
  /// The ratio from which on a preamble is found; nothing: each is.
  [[nodiscard]] std::optional<double> preamble_ratio() const { return preamble_ratio_; }
  /// Of powers: the noise; nothing where SINRs do not count.
  [[nodiscard]] std::optional<double> noise() const { return noise_; }

 private:
  [[nodiscard]] Heard judge(StationIndex sender, StationIndex receiver) const;
  void list(StationIndex sender);

  ReachConfig config_;
  std::vector<Position> positions_;
  std::optional<double> capture_ratio_;
  std::optional<double> preamble_ratio_;
  std::optional<double> noise_;
  std::vector<std::vector<Heard>> heard_;  // by sender
};

}  // namespace nagi::model
