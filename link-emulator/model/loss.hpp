// SPDX-License-Identifier: Apache-2.0
//
// Loss on the channel. A model is asked about one transmission after the other, in order, and says
// whether it is lost. Per-packet models decide by the packet's index, timed models by its instants,
// so the same arrivals always give the same losses.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <variant>

#include "model/random.hpp"
#include "model/units.hpp"

namespace nagi::model {

/// One packet on the channel during [start, end).
struct Transmission {
  std::uint64_t index = 0;  // counts the packets that reached the loss model
  Bytes size;
  Instant start;
  Instant end;
};

class LossModel {
 public:
  LossModel() = default;
  LossModel(const LossModel&) = delete;
  LossModel& operator=(const LossModel&) = delete;
  virtual ~LossModel() = default;
  [[nodiscard]] virtual bool loses(const Transmission& transmission) = 0;
};

/// Every packet is lost with the same probability, independently.
struct BernoulliConfig {
  double probability = 0;
};

/// A Poisson process in time: a packet during whose transmission an event falls is lost.
/// A full-size packet of L bytes is lost with probability E when the event rate is
/// -ln(1 - E) x rate / 8L.
struct PoissonConfig {
  double packet_loss_rate = 0;  // E, in [0, 1)
  Bytes packet;                 // L
};

struct NoLossConfig {};

using LossConfig = std::variant<NoLossConfig, BernoulliConfig, PoissonConfig>;

/// Mean time between the events of a Poisson process, in picoseconds; nothing if there are none.
std::optional<std::uint64_t> poisson_mean_interval(const PoissonConfig& config, Bitrate rate);

/// The model that `config` asks for, or null for no loss. `rate` is the link's; timed models need
/// it.
std::unique_ptr<LossModel> make_loss(const LossConfig& config, std::optional<Bitrate> rate,
                                     const Stream& stream);

}  // namespace nagi::model
