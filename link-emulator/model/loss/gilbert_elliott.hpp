// SPDX-License-Identifier: Apache-2.0
//
// A channel with two states. After every packet, it leaves its state with a given probability
// (Gilbert 1960, Elliott 1963). The first packet is sent in the good state.
#pragma once

#include "model/described.hpp"
#include "model/loss/loss_model.hpp"
#include "model/loss/two_states.hpp"

namespace nagi::model {

struct GilbertElliottLoss {
  double good_to_bad = 0;
  double bad_to_good = 1;
  double loss_in_good = 0;
  double loss_in_bad = 1;

  static constexpr std::string_view name = "gilbert_elliott";
  static constexpr auto fields() {
    using Self = GilbertElliottLoss;
    return std::tuple(required("good_to_bad", &Self::good_to_bad, bounds::probability),
                      required("bad_to_good", &Self::bad_to_good, bounds::probability),
                      optional("loss_in_good", &Self::loss_in_good, bounds::probability),
                      optional("loss_in_bad", &Self::loss_in_bad, bounds::probability));
  }

  class Model;
};

class GilbertElliottLoss::Model final : public LossModel {
 public:
  Model(const GilbertElliottLoss& config, const LossContext& context)
      : channel_(config.loss_in_good, config.loss_in_bad, context.draws),
        good_to_bad_(config.good_to_bad),
        bad_to_good_(config.bad_to_good),
        changes_(context.state_draws) {}

  bool loses(std::uint64_t index, const Transmission& /*any*/) override {
    const bool lost = channel_.loses(index);
    const Chance& leaves = channel_.is_bad() ? bad_to_good_ : good_to_bad_;
    if (leaves.happens(changes_.draw(index))) channel_.change();
    return lost;
  }

 private:
  TwoStates channel_;
  Chance good_to_bad_;
  Chance bad_to_good_;
  Stream changes_;
};

}  // namespace nagi::model
