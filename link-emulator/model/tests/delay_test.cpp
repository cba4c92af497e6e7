// SPDX-License-Identifier: Apache-2.0
//
// Jitter against its distributions: 10^6 packets, seeded, at significance 0.001. The statistic is
// Kolmogorov and Smirnov's: H0 is rejected if sqrt(n) D > 1.95.
#include "model/delay.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <vector>

namespace nagi::model {
namespace {

using namespace std::chrono_literals;

const JitterStreams streams{{2008, 1, DirectionName::forward, Purpose::jitter},
                            {2008, 1, DirectionName::forward, Purpose::jitter_repeat},
                            {2008, 1, DirectionName::forward, Purpose::jitter_redraw}};

/// sqrt(n) times the largest distance between the delays' distribution and `expected`.
double distance(Delay delay, const std::function<double(double)>& expected) {
  constexpr std::size_t n = 1'000'000;
  std::vector<std::int64_t> delays;
  for (std::uint64_t index = 0; index < n; ++index) {
    delays.push_back(delay.next(index, Instant{}).count());
  }
  std::ranges::sort(delays);
  double maximum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double value = expected(static_cast<double>(delays[i]));
    maximum = std::max({maximum, std::abs(value - static_cast<double>(i) / n),
                        std::abs(value - static_cast<double>(i + 1) / n)});
  }
  return maximum * std::sqrt(static_cast<double>(n));
}

constexpr double critical = 1.95;

TEST(Jitter, IsUniform) {
  Delay delay(Duration{20ms}, {UniformJitter{5ms}}, streams);
  EXPECT_LT(distance(delay, [](double ns) { return (ns - 15e6) / 10e6; }), critical);
}

TEST(Jitter, IsNormal) {
  Delay delay(Duration{20ms}, {NormalJitter{2ms}}, streams);
  EXPECT_LT(
      distance(delay, [](double ns) { return std::erfc((20e6 - ns) / 2e6 / std::sqrt(2.0)) / 2; }),
      critical);
}

TEST(Jitter, IsExponential) {
  Delay delay(Duration{20ms}, {ExponentialJitter{3ms}}, streams);
  EXPECT_LT(distance(delay, [](double ns) { return -std::expm1((20e6 - ns) / 3e6); }), critical);
}

TEST(Jitter, NeverDeliversBeforeSending) {
  Delay delay(Duration{1ms}, {NormalJitter{5ms}}, streams);
  Duration minimum{1h};
  for (std::uint64_t index = 0; index < 1000; ++index) {
    minimum = std::min(minimum, delay.next(index, Instant{}));
  }
  EXPECT_EQ(minimum, 0ms);
}

// H0: the median and the share of zeros are those of the truncated normal distribution.
TEST(Jitter, RedrawsWhatWouldBeNegative) {
  constexpr int n = 100'000;
  // Deviation = delay: 15.9 % of all sums are negative.
  const auto zeros = [](bool redraws) {
    Delay delay(Duration{5ms}, {NormalJitter{5ms}, 0, redraws}, streams);
    int found = 0;
    for (std::uint64_t index = 0; index < n; ++index) {
      found += delay.next(index, Instant{}) == 0ns ? 1 : 0;
    }
    return found;
  };
  EXPECT_NEAR(zeros(false), 0.158655 * n, 3.29 * std::sqrt(n * 0.1587 * 0.8413));
  EXPECT_EQ(zeros(true), 0);
  Delay truncated(Duration{5ms}, {NormalJitter{5ms}, 0, true}, streams);
  const double negative = 0.158655;
  EXPECT_LT(distance(truncated,
                     [&](double ns) {
                       const double share = std::erfc((5e6 - ns) / 5e6 / std::sqrt(2.0)) / 2;
                       return (share - negative) / (1 - negative);
                     }),
            critical);
}

// H0: the autocorrelation at lags 1 and 3 is 0.8 and 0.8^3. Repeats come in runs, so that there are
// (1 - c) / (1 + c) independent ones a packet.
TEST(Jitter, IsCorrelatedAndKeepsItsDistribution) {
  const double correlation = 0.8;
  constexpr std::size_t n = 1'000'000;
  Delay delay(Duration{20ms}, {UniformJitter{5ms}, correlation}, streams);
  std::vector<double> jitters;
  for (std::uint64_t index = 0; index < n; ++index) {
    jitters.push_back(static_cast<double>((delay.next(index, Instant{}) - 20ms).count()) / 5e6);
  }
  const double variance = 1.0 / 3;
  const double error = 3.29 / std::sqrt(n * (1 - correlation) / (1 + correlation));
  const auto lagged = [&](std::size_t lag) {
    double sum = 0;
    for (std::size_t i = lag; i < n; ++i) sum += jitters[i] * jitters[i - lag];
    return sum / static_cast<double>(n - lag) / variance;
  };
  EXPECT_NEAR(lagged(0), 1, error);
  EXPECT_NEAR(lagged(1), correlation, error);
  EXPECT_NEAR(lagged(3), correlation * correlation * correlation, error);
}

// H0: each quantile of the table is as likely as any other.
TEST(Jitter, FollowsATable) {
  constexpr int n = 100'000;
  Delay delay(Duration{20ms}, {TableJitter{2ms, {-1.5, 0, 0.25, 4}}}, streams);
  EXPECT_EQ(delay.min(), 17ms);
  std::map<Duration, int> seen;
  for (std::uint64_t index = 0; index < n; ++index) ++seen[delay.next(index, Instant{})];
  EXPECT_EQ(seen.size(), 4U);
  for (const Duration expected :
       {Duration{17ms}, Duration{20ms}, Duration{20500us}, Duration{28ms}}) {
    EXPECT_NEAR(seen[expected], n / 4, 3.29 * std::sqrt(n * 0.25 * 0.75));
  }
}

TEST(Delay, FollowsItsTrace) {
  Delay delay(Trace<Duration>{{{0ms, Duration{5ms}}, {10ms, Duration{8ms}}}, 30ms}, {}, streams);
  EXPECT_EQ(delay.next(0, Instant{0ms}), 5ms);
  EXPECT_EQ(delay.next(1, Instant{10ms} - 1ns), 5ms);
  EXPECT_EQ(delay.next(2, Instant{10ms}), 8ms);
  EXPECT_EQ(delay.next(3, Instant{29ms}), 8ms);
  EXPECT_EQ(delay.next(4, Instant{30ms}), 5ms);
  EXPECT_EQ(delay.next(5, Instant{100ms}), 8ms);
}

}  // namespace
}  // namespace nagi::model
