// SPDX-License-Identifier: Apache-2.0
//
// Seeded draws by inverse transform, which are equal on every machine: std::mt19937_64 is defined
// exactly, but the distributions of the standard library are not.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <string_view>

namespace nagi::applications {

/// A stream of random draws.
class Draws {
 public:
  /// Create the stream with the name `stream`. Streams with equal seeds and different names are
  /// independent.
  Draws(std::uint64_t seed, std::string_view stream) {
    std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
    for (const char letter : stream) {
      hash = (hash ^ static_cast<unsigned char>(letter)) * 1099511628211ULL;
    }
    std::seed_seq sequence{seed & 0xffffffff, seed >> 32, hash & 0xffffffff, hash >> 32};
    engine_.seed(sequence);
  }

  /// Return a uniform number in (0, 1] with 53 bits.
  double uniform() { return (static_cast<double>(engine_() >> 11) + 1) * 0x1p-53; }

  /// Return an exponentially distributed number.
  double exponential(double mean) { return -mean * std::log(uniform()); }

  /// Return a Pareto-distributed number with the given mean; `shape` must exceed 1. The smallest
  /// value is mean (shape - 1) / shape.
  double pareto(double mean, double shape) {
    return mean * (shape - 1) / shape * std::pow(uniform(), -1 / shape);
  }

  /// Return a number with a Pareto distribution between `low` and `high`. The distribution function
  /// is (1 - (low / x)^shape) / (1 - (low / high)^shape).
  double bounded_pareto(double low, double high, double shape) {
    const double tail = std::pow(low / high, shape);
    const double u = uniform();  // 1 - u (1 - tail) is in [tail, 1)
    return low * std::pow(1 - u * (1 - tail), -1 / shape);
  }

 private:
  std::mt19937_64 engine_;
};

/// Return the mean of bounded_pareto(); `shape` must not be 1.
inline double bounded_pareto_mean(double low, double high, double shape) {
  const double tail = std::pow(low / high, shape);
  return std::pow(low, shape) / (1 - tail) * shape / (shape - 1) *
         (std::pow(low, 1 - shape) - std::pow(high, 1 - shape));
}

}  // namespace nagi::applications
