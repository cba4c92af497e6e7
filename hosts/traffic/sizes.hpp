// SPDX-License-Identifier: Apache-2.0
//
// The sizes of transfers: constant or random.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "arithmetic/draws.hpp"
#include "io/input_error.hpp"

namespace nagi::applications {

struct Sizes {
  std::string distribution = "constant";  ///< constant, exponential or pareto (bounded)
  std::uint64_t size_bytes = 0;           ///< the constant size, or the mean of exponential
  std::uint64_t min_bytes = 0;            ///< minimum of the Pareto distribution
  std::uint64_t max_bytes = 0;            ///< maximum of the Pareto distribution
  double shape = 1.2;                     ///< shape of the Pareto distribution

  /// Throw InputError if a setting of the distribution is missing.
  void check() const {
    if (distribution == "pareto") {
      if (min_bytes == 0 || max_bytes <= min_bytes) {
        throw InputError("the sizes have no bounds; give --min and a larger --max");
      }
    } else if (size_bytes == 0) {
      throw InputError("no size; give --size");
    }
  }

  /// Draw a size in bytes, at least 1.
  [[nodiscard]] std::uint64_t draw(Draws& draws) const {
    double size = static_cast<double>(size_bytes);
    if (distribution == "exponential") size = draws.exponential(size);
    if (distribution == "pareto") {
      size = draws.bounded_pareto(static_cast<double>(min_bytes), static_cast<double>(max_bytes),
                                  shape);
    }
    return static_cast<std::uint64_t>(std::max(1.0, std::round(size)));
  }
};

/// The seed and the stream of random draws (arithmetic/draws.hpp).
struct Seed {
  std::uint64_t seed = 1;
  std::string stream;
};

}  // namespace nagi::applications
