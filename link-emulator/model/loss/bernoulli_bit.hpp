// SPDX-License-Identifier: Apache-2.0
//
// Bit errors: every bit is wrong with the same probability b, independently. A packet with a wrong
// bit is lost, which happens with probability 1 - (1 - b)^(8 x size).
#pragma once

#include "model/described.hpp"
#include "model/loss/loss_model.hpp"

namespace nagi::model {

struct BernoulliBitLoss {
  double bit_error_rate = 0;  // b, in [0, 1)

  static constexpr std::string_view name = "bernoulli_bit";
  static constexpr auto fields() {
    return std::tuple(
        required("bit_error_rate", &BernoulliBitLoss::bit_error_rate, bounds::bit_error_rate));
  }

  class Model;
};

class BernoulliBitLoss::Model final : public LossModel {
 public:
  Model(const BernoulliBitLoss& config, const LossContext& context)
      : one_bit_survives_(Chance(config.bit_error_rate).complement()), draws_(context.draws) {}

  bool loses(std::uint64_t index, const Transmission& transmission) override {
    const Chance survives = one_bit_survives_.times(transmission.packet.size.count * 8);
    return !survives.happens(draws_.draw(index));
  }

 private:
  Chance one_bit_survives_;
  Stream draws_;
};

}  // namespace nagi::model
