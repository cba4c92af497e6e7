// SPDX-License-Identifier: Apache-2.0
//
// Jitter with a normal distribution around 0.
#pragma once

#include <cmath>

#include "model/described.hpp"
#include "model/random.hpp"

namespace nagi::model {

struct NormalJitter {
  Duration deviation{};

  static constexpr std::string_view name = "normal";
  static constexpr auto fields() {
    return std::tuple(required("deviation_ns", &NormalJitter::deviation, bounds::jitter_ns));
  }
  [[nodiscard]] Duration at(std::uint64_t draw) const {
    const double deviate = standard_normal(draw);
    return Duration{std::llround(deviate * static_cast<double>(deviation.count()))};
  }
  [[nodiscard]] Duration min() const { return Duration::min(); }
};

}  // namespace nagi::model
