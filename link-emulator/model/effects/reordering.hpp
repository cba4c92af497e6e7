// SPDX-License-Identifier: Apache-2.0
//
// Reordering: some packets are held back, so that later packets overtake them (RFC 4737). The other
// packets keep their order.
#pragma once

#include "model/described.hpp"
#include "model/effects/effect.hpp"

namespace nagi::model {

struct Reordering {
  double probability = 0;
  Duration delay{};  // added to the link's delay

  static constexpr std::string_view name = "reordering";
  static constexpr Purpose purpose = Purpose::reordering;
  static constexpr auto fields() {
    return std::tuple(required("probability", &Reordering::probability, bounds::probability),
                      required("delay_ns", &Reordering::delay, bounds::delay_ns));
  }

  class Model;
};

class Reordering::Model final : public Effect {
 public:
  Model(const Reordering& config, const Stream& draws)
      : chance_(config.probability), delay_(config.delay), draws_(draws) {}

  void apply(std::uint64_t index, Arrival& arrival) const override {
    if (!chance_.happens(draws_.draw(index))) return;
    arrival.at += delay_;
    arrival.keeps_order = false;
  }

 private:
  Chance chance_;
  Duration delay_;
  Stream draws_;
};

}  // namespace nagi::model
