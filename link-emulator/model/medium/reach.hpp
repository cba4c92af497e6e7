// SPDX-License-Identifier: Apache-2.0
//
// The stations that the signal of each station reaches on a medium: where its frames can be
// decoded, where they keep the air busy, and where they interfere with other frames. The
// configuration gives ranges, powers, or matrices.
//
// Ranges follow ns-2 (802_11 with TwoRayGround): stations within the transmission range decode a
// frame, and stations within the carrier-sense range sense it. The power falls with the fourth
// power of the distance. With a capture ratio, a frame survives a frame that begins later and is
// weaker by that ratio. Without a capture ratio, any other frame from within the interference range
// disturbs the frame.
//
// Powers in dBm follow a path-loss exponent. A receiver finds a frame's preamble if its power is
// above the sensitivity and if, when the frame begins, its ratio to noise plus interference (SINR)
// is at least `preamble_db`. It receives the frame if the SINR never falls below the capture ratio.
// Otherwise the reception ends with an error, and the station waits for EIFS.
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

/// Matrices that are indexed by [sender][receiver].
struct MatrixReach {
  std::vector<std::vector<bool>> decodes;
  std::vector<std::vector<bool>> senses;
  std::vector<std::vector<bool>> interferes;
};

using ReachConfig = std::variant<RangesReach, SinrReach, MatrixReach>;

/// The signal of another station at `receiver`: whether its frames are decoded, keep the air busy,
/// and interfere with other frames.
struct Heard {
  StationIndex receiver = 0;
  bool decodes = false;
  bool senses = false;
  bool interferes = false;
  double power = 0;  // in mW with SinrReach, a relative value with other configurations
};

/// The signals between all stations of a medium.
class Reach {
 public:
  Reach(ReachConfig config, std::vector<Position> positions);

  /// Return the signals of `sender` at all stations that it reaches, in the order of their indices.
  [[nodiscard]] const std::vector<Heard>& heard_from(StationIndex sender) const {
    return heard_[sender];
  }
  /// Return the signal of `sender` at `receiver`; all flags are false if the signal does not reach
  /// the receiver.
  [[nodiscard]] Heard between(StationIndex sender, StationIndex receiver) const;
  void move(StationIndex station, Position to);

  /// Return the ratio by which a frame must be stronger than a later frame to survive that frame,
  /// or nothing if every later frame destroys it.
  [[nodiscard]] std::optional<double> capture_ratio() const { return capture_ratio_; }
  /// Return the minimum SINR at which a preamble is found, or nothing if every preamble is found.
  [[nodiscard]] std::optional<double> preamble_ratio() const { return preamble_ratio_; }
  /// Return the power of the noise in mW, or nothing if the model does not use SINRs.
  [[nodiscard]] std::optional<double> noise() const { return noise_; }

 private:
  [[nodiscard]] Heard compute_heard(StationIndex sender, StationIndex receiver) const;
  void update_heard(StationIndex sender);

  ReachConfig config_;
  std::vector<Position> positions_;
  std::optional<double> capture_ratio_;
  std::optional<double> preamble_ratio_;
  std::optional<double> noise_;
  std::vector<std::vector<Heard>> heard_;  // by sender
};

}  // namespace nagi::model
