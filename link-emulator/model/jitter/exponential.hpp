// SPDX-License-Identifier: Apache-2.0
//
// Jitter with an exponential distribution, which is never negative.
#pragma once

#include "model/described.hpp"
#include "model/random.hpp"

namespace nagi::model {

struct ExponentialJitter {
  Duration mean{};

  static constexpr std::string_view name = "exponential";
  static constexpr auto fields() {
    return std::tuple(required("mean_ns", &ExponentialJitter::mean, bounds::jitter_ns));
  }
  [[nodiscard]] Duration at(std::uint64_t draw) const {
    return exponential(draw, static_cast<std::uint64_t>(mean.count()) * 1000);
  }
  [[nodiscard]] Duration min() const { return {}; }
};

}  // namespace nagi::model
