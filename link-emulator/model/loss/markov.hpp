// SPDX-License-Identifier: Apache-2.0
//
// A channel with two states, which it leaves after exponentially distributed times. A packet is
// lost with the probability of the state at the begin of its transmission. The first state is good.
#pragma once

#include "model/described.hpp"
#include "model/loss/loss_model.hpp"
#include "model/loss/two_states.hpp"

namespace nagi::model {

struct MarkovLoss {
  Duration good_sojourn{};  // mean time in the good state
  Duration bad_sojourn{};   // mean time in the bad state
  double loss_in_good = 0;
  double loss_in_bad = 1;

  static constexpr std::string_view name = "markov";
  static constexpr auto fields() {
    using Self = MarkovLoss;
    return std::tuple(required("good_sojourn_ns", &Self::good_sojourn, bounds::sojourn_ns),
                      required("bad_sojourn_ns", &Self::bad_sojourn, bounds::sojourn_ns),
                      optional("loss_in_good", &Self::loss_in_good, bounds::probability),
                      optional("loss_in_bad", &Self::loss_in_bad, bounds::probability));
  }

  class Model;
};

class MarkovLoss::Model final : public LossModel {
 public:
  Model(const MarkovLoss& config, const LossContext& context)
      : channel_(config.loss_in_good, config.loss_in_bad, context.draws),
        good_sojourn_(config.good_sojourn),
        bad_sojourn_(config.bad_sojourn),
        sojourns_(context.state_draws),
        changes_at_(context.from) {
    draw_sojourn();
  }

  bool loses(std::uint64_t index, const Transmission& transmission) override {
    skip_to(transmission.start);
    while (changes_at_ <= transmission.start) {
      channel_.change();
      draw_sojourn();
    }
    return channel_.loses(index);
  }

 private:
  /// Skip a long time without transmissions: draw the state at `at` with the fractions of time that
  /// the channel spends in the two states. The remaining sojourn needs no history, because the
  /// exponential distribution has no memory.
  void skip_to(Instant at) {
    constexpr std::int64_t max_cycles = 1'000'000;
    const Duration cycle = good_sojourn_ + bad_sojourn_;
    if (changes_at_ > at || (at - changes_at_) / cycle <= max_cycles) return;
    const double bad_fraction =
        static_cast<double>(bad_sojourn_.count()) / static_cast<double>(cycle.count());
    if (channel_.is_bad() != Chance(bad_fraction).happens(sojourns_.draw(draw_++)))
      channel_.change();
    changes_at_ = at;
    draw_sojourn();
  }
  void draw_sojourn() {
    const Duration mean = channel_.is_bad() ? bad_sojourn_ : good_sojourn_;
    changes_at_ +=
        exponential(sojourns_.draw(draw_++), static_cast<std::uint64_t>(mean.count()) * 1000);
  }

  TwoStates channel_;
  Duration good_sojourn_;
  Duration bad_sojourn_;
  Stream sojourns_;
  std::uint64_t draw_ = 0;
  Instant changes_at_;
};

}  // namespace nagi::model
