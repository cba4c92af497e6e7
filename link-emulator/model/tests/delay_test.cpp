// SPDX-License-Identifier: Apache-2.0
//
// Jitter against its distributions: 10^6 packets, seeded, at significance 0.001. The statistic is
// Kolmogorov and Smirnov's: H0 is rejected if sqrt(n) D > 1.95.
#include "model/delay.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

namespace nagi::model {
namespace {

using namespace std::chrono_literals;

const Stream stream(2008, 1, Way::a_to_b, Purpose::jitter);

/// sqrt(n) times the largest distance between the delays' distribution and `expected`.
double distance(const Delay& delay, const std::function<double(double)>& expected) {
  constexpr std::size_t n = 1'000'000;
  std::vector<std::int64_t> delays;
  for (std::uint64_t index = 0; index < n; ++index) {
    delays.push_back(delay.of(index, Instant{}).count());
  }
  std::ranges::sort(delays);
  double most = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double value = expected(static_cast<double>(delays[i]));
    most = std::max({most, std::abs(value - static_cast<double>(i) / n),
                     std::abs(value - static_cast<double>(i + 1) / n)});
  }
  return most * std::sqrt(static_cast<double>(n));
}

constexpr double critical = 1.95;

TEST(Jitter, IsUniform) {
  const Delay delay(Duration{20ms}, UniformJitter{5ms}, stream);
  EXPECT_LT(distance(delay, [](double ns) { return (ns - 15e6) / 10e6; }), critical);
}

TEST(Jitter, IsNormal) {
  const Delay delay(Duration{20ms}, NormalJitter{2ms}, stream);
  EXPECT_LT(
      distance(delay, [](double ns) { return std::erfc((20e6 - ns) / 2e6 / std::sqrt(2.0)) / 2; }),
      critical);
}

TEST(Jitter, IsExponential) {
  const Delay delay(Duration{20ms}, ExponentialJitter{3ms}, stream);
  EXPECT_LT(distance(delay, [](double ns) { return -std::expm1((20e6 - ns) / 3e6); }), critical);
}

TEST(Jitter, NeverDeliversBeforeSending) {
  const Delay delay(Duration{1ms}, NormalJitter{5ms}, stream);
  Duration least{1h};
  for (std::uint64_t index = 0; index < 1000; ++index) {
    least = std::min(least, delay.of(index, Instant{}));
  }
  EXPECT_EQ(least, 0ms);
}

TEST(Delay, FollowsItsTrace) {
  const Delay delay(Trace<Duration>{{{0ms, Duration{5ms}}, {10ms, Duration{8ms}}}, 30ms},
                    NoJitter{}, stream);
  EXPECT_EQ(delay.of(0, Instant{0ms}), 5ms);
  EXPECT_EQ(delay.of(1, Instant{10ms} - 1ns), 5ms);
  EXPECT_EQ(delay.of(2, Instant{10ms}), 8ms);
  EXPECT_EQ(delay.of(3, Instant{29ms}), 8ms);
  EXPECT_EQ(delay.of(4, Instant{30ms}), 5ms);
  EXPECT_EQ(delay.of(5, Instant{100ms}), 8ms);
}

}  // namespace
}  // namespace nagi::model
