// SPDX-License-Identifier: Apache-2.0
//
// Jitter that is uniform in [-half_width, half_width).
#pragma once

#include "model/described.hpp"

namespace nagi::model {

struct UniformJitter {
  Duration half_width{};

  static constexpr std::string_view name = "uniform";
  static constexpr auto fields() {
    return std::tuple(required("half_width_ns", &UniformJitter::half_width, bounds::jitter_ns));
  }
  [[nodiscard]] Duration at(std::uint64_t draw) const {
    using Wide = unsigned __int128;
    const auto width = static_cast<std::uint64_t>(half_width.count()) * 2;
    return Duration{static_cast<std::int64_t>((Wide{draw} * width) >> 64)} - half_width;
  }
  [[nodiscard]] Duration min() const { return -half_width; }
};

}  // namespace nagi::model
