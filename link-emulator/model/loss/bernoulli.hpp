// SPDX-License-Identifier: Apache-2.0
//
// Bernoulli losses: every packet is lost with the same probability, independently.
#pragma once

#include "model/described.hpp"
#include "model/loss/loss_model.hpp"

namespace nagi::model {

struct BernoulliLoss {
  double probability = 0;

  static constexpr std::string_view name = "bernoulli";
  static constexpr auto fields() {
    return std::tuple(required("probability", &BernoulliLoss::probability, bounds::probability));
  }

  class Model;
};

class BernoulliLoss::Model final : public LossModel {
 public:
  Model(const BernoulliLoss& config, const LossContext& context)
      : chance_(config.probability), draws_(context.draws) {}

  bool loses(std::uint64_t index, const Transmission& /*any*/) override {
    return chance_.happens(draws_.draw(index));
  }

 private:
  Chance chance_;
  Stream draws_;
};

}  // namespace nagi::model
