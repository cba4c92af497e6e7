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
#include <vector>

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

struct NoLossConfig {};

/// Every packet is lost with the same probability, independently.
struct BernoulliConfig {
  double probability = 0;
};

/// Every bit is hit with the same probability, independently; a packet with a bit that was hit is
/// lost: with probability 1 - (1 - b)^(8 x size).
struct BernoulliBitConfig {
  double bit_error_rate = 0;  // b, in [0, 1)
};

/// A Poisson process in time: a packet during whose transmission an event falls is lost.
/// A full-size packet of L bytes is lost with probability E when the event rate is
/// -ln(1 - E) x rate / 8L.
struct PoissonConfig {
  double packet_loss_rate = 0;  // E, in [0, 1)
  Bytes packet;                 // L
};

/// Two states, left with a given probability after every packet (Gilbert 1960, Elliott 1963). The
/// first packet meets the good one.
struct GilbertElliottConfig {
  double good_to_bad = 0;
  double bad_to_good = 1;
  double loss_in_good = 0;
  double loss_in_bad = 1;
};

/// Two states, each left after an exponentially distributed time. A packet meets the state in which
/// its transmission begins. The first state is the good one.
struct MarkovConfig {
  Duration good_sojourn{};  // means
  Duration bad_sojourn{};
  double loss_in_good = 0;
  double loss_in_bad = 1;
};

/// Losses as recorded: the packets whose indices are listed, again and again after `length`
/// packets.
struct LossTraceConfig {
  std::vector<std::uint64_t> lost;  // increasing, below length
  std::uint64_t length = 1;
};

/// Whatever happens to the waveforms of a radio: nothing is drawn, outcomes are told (see
/// link.hpp).
struct RadioConfig {};

using LossConfig = std::variant<NoLossConfig, BernoulliConfig, BernoulliBitConfig, PoissonConfig,
                                GilbertElliottConfig, MarkovConfig, LossTraceConfig, RadioConfig>;

/// Mean time between the events of a Poisson process, in picoseconds; nothing if there are none.
std::optional<std::uint64_t> poisson_mean_interval(const PoissonConfig& config, Bitrate rate);

/// Which streams a loss model draws from.
struct LossStreams {
  Stream loss;
  Stream state;
};

/// The model that `config` asks for, or null for no loss. Timed models begin at `from`. `rate` is
/// the link's, if it is constant; a Poisson process needs it.
std::unique_ptr<LossModel> make_loss(const LossConfig& config, std::optional<Bitrate> rate,
                                     const LossStreams& streams, Instant from = {});

}  // namespace nagi::model
