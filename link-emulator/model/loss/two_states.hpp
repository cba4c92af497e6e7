// SPDX-License-Identifier: Apache-2.0
//
// A channel with a good and a bad state, each with its own probability of losing a packet.
#pragma once

#include "model/random.hpp"

namespace nagi::model {

class TwoStates {
 public:
  TwoStates(double loss_in_good, double loss_in_bad, const Stream& draws)
      : loss_in_good_(loss_in_good), loss_in_bad_(loss_in_bad), draws_(draws) {}

  [[nodiscard]] bool is_bad() const { return is_bad_; }
  void change() { is_bad_ = !is_bad_; }
  [[nodiscard]] bool loses(std::uint64_t index) const {
    return (is_bad_ ? loss_in_bad_ : loss_in_good_).happens(draws_.draw(index));
  }

 private:
  bool is_bad_ = false;
  Chance loss_in_good_;
  Chance loss_in_bad_;
  Stream draws_;
};

}  // namespace nagi::model
