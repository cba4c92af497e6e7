// SPDX-License-Identifier: Apache-2.0
//
// Recorded losses: the packets with the listed indices are lost. The pattern repeats after `length`
// packets.
#pragma once

#include <algorithm>

#include "model/described.hpp"
#include "model/loss/loss_model.hpp"

namespace nagi::model {

struct TraceLoss {
  std::vector<std::uint64_t> lost;  // increasing, below length
  std::uint64_t length = 1;

  static constexpr std::string_view name = "trace";
  static constexpr auto fields() {
    using Self = TraceLoss;
    return std::tuple(required("length", &Self::length, bounds::loss_trace_packets),
                      IncreasingField<Self>{"lost", &Self::lost, &Self::length, "length"});
  }

  class Model;
};

class TraceLoss::Model final : public LossModel {
 public:
  Model(TraceLoss config, const LossContext& /*any*/) : config_(std::move(config)) {}

  bool loses(std::uint64_t index, const Transmission& /*any*/) override {
    return std::ranges::binary_search(config_.lost, index % config_.length);
  }

 private:
  TraceLoss config_;
};

}  // namespace nagi::model
