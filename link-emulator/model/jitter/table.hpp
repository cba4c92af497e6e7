// SPDX-License-Identifier: Apache-2.0
//
// Jitter from a table of quantiles, as in netem (tc-netem(8), `distribution`): all entries are
// equally likely.
#pragma once

#include <cmath>

#include "model/described.hpp"

namespace nagi::model {

struct TableJitter {
  Duration deviation{};
  std::vector<double> quantiles;  // in units of `deviation`, in increasing order

  static constexpr std::string_view name = "table";
  static constexpr auto fields() {
    using Self = TableJitter;
    return std::tuple(required("deviation_ns", &Self::deviation, bounds::jitter_ns),
                      SortedField<Self>{"quantiles", &Self::quantiles, bounds::quantile});
  }
  [[nodiscard]] Duration at(std::uint64_t draw) const {
    using Wide = unsigned __int128;
    return jitter_of(quantiles[static_cast<std::size_t>((Wide{draw} * quantiles.size()) >> 64)]);
  }
  [[nodiscard]] Duration min() const { return jitter_of(quantiles.front()); }

 private:
  [[nodiscard]] Duration jitter_of(double deviations) const {
    return Duration{std::llround(deviations * static_cast<double>(deviation.count()))};
  }
};

}  // namespace nagi::model
