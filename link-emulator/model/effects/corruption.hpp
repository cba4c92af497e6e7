// SPDX-License-Identifier: Apache-2.0
//
// Corruption: some packets arrive with changed bits. Their checksums are wrong, so hosts discard
// them.
#pragma once

#include "model/described.hpp"
#include "model/effects/effect.hpp"

namespace nagi::model {

struct Corruption {
  double probability = 0;

  static constexpr std::string_view name = "corruption";
  static constexpr Purpose purpose = Purpose::corruption;
  static constexpr auto fields() {
    return std::tuple(required("probability", &Corruption::probability, bounds::probability));
  }

  class Model;
};

class Corruption::Model final : public Effect {
 public:
  Model(const Corruption& config, const Stream& draws)
      : chance_(config.probability), draws_(draws) {}

  void apply(std::uint64_t index, Arrival& arrival) const override {
    arrival.packet.corrupted = chance_.happens(draws_.draw(index));
  }

 private:
  Chance chance_;
  Stream draws_;
};

}  // namespace nagi::model
