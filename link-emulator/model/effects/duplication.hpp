// SPDX-License-Identifier: Apache-2.0
//
// Duplication: some packets arrive twice; the copy arrives just before the original.
#pragma once

#include "model/described.hpp"
#include "model/effects/effect.hpp"

namespace nagi::model {

struct Duplication {
  double probability = 0;

  static constexpr std::string_view name = "duplication";
  static constexpr Purpose purpose = Purpose::duplication;
  static constexpr auto fields() {
    return std::tuple(required("probability", &Duplication::probability, bounds::probability));
  }

  class Model;
};

class Duplication::Model final : public Effect {
 public:
  Model(const Duplication& config, const Stream& draws)
      : chance_(config.probability), draws_(draws) {}

  void apply(std::uint64_t index, Arrival& arrival) const override {
    if (chance_.happens(draws_.draw(index))) arrival.copies = 1;
  }

 private:
  Chance chance_;
  Stream draws_;
};

}  // namespace nagi::model
