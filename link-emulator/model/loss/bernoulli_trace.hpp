// SPDX-License-Identifier: Apache-2.0
//
// Losses whose probability follows a trace over time. A packet is lost with the probability at the
// begin of its transmission.
#pragma once

#include "model/described.hpp"
#include "model/loss/loss_model.hpp"

namespace nagi::model {

struct BernoulliTraceLoss {
  Trace<double> probability;

  static constexpr std::string_view name = "bernoulli_trace";
  static constexpr auto fields() {
    return std::tuple(
        StepsField<BernoulliTraceLoss>{&BernoulliTraceLoss::probability, bounds::probability});
  }

  class Model;
};

class BernoulliTraceLoss::Model final : public LossModel {
 public:
  Model(const BernoulliTraceLoss& config, const LossContext& context)
      : probability_(config.probability), draws_(context.draws) {}

  bool loses(std::uint64_t index, const Transmission& transmission) override {
    return Chance(probability_.at(transmission.start).value).happens(draws_.draw(index));
  }

 private:
  Trace<double> probability_;
  Stream draws_;
};

}  // namespace nagi::model
