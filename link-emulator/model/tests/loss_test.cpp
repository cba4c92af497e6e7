// SPDX-License-Identifier: Apache-2.0
//
// Statistical tests are seeded. Each states its null hypothesis and is two-sided at significance
// 0.001 (|z| < 3.29).
#include "model/loss.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace nagi::model {
namespace {

using namespace std::chrono_literals;

constexpr double critical_z = 3.29;
const Stream stream(2008, 1, Way::a_to_b, Purpose::loss);

/// Packets back to back at `rate`; which of them are lost.
std::vector<bool> losses(LossModel& model, std::uint64_t packets, Bytes size, Bitrate rate) {
  std::vector<bool> lost;
  Instant at{};
  const Duration air{static_cast<std::int64_t>(size.count * 8'000'000'000 / rate.bits_per_second)};
  for (std::uint64_t index = 0; index < packets; ++index) {
    lost.push_back(model.loses({index, size, at, at + air}));
    at += air;
  }
  return lost;
}

/// How many standard deviations the number of losses is from n p.
double z_of(const std::vector<bool>& lost, double probability) {
  const auto n = static_cast<double>(lost.size());
  const auto hits = static_cast<double>(std::count(lost.begin(), lost.end(), true));
  return (hits - n * probability) / std::sqrt(n * probability * (1 - probability));
}

TEST(NoLoss, IsNoModel) { EXPECT_EQ(make_loss(NoLossConfig{}, Bitrate{1}, stream), nullptr); }

// H0: each of 10^6 packets is lost with probability p.
TEST(Bernoulli, HasItsRate) {
  for (double probability : {0.001, 0.01, 0.5}) {
    const auto model = make_loss(BernoulliConfig{probability}, std::nullopt, stream);
    EXPECT_LT(std::abs(z_of(losses(*model, 1'000'000, {1052}, {10'000'000}), probability)),
              critical_z);
  }
}

// H0: losses are independent, so runs of losses have mean length 1 / (1 - p); n runs of variance
// p / (1 - p)^2 each.
TEST(Bernoulli, HasItsRunLengths) {
  const double p = 0.3;
  const auto model = make_loss(BernoulliConfig{p}, std::nullopt, stream);
  const auto lost = losses(*model, 1'000'000, {1052}, {10'000'000});
  double runs = 0;
  double lengths = 0;
  for (std::size_t i = 0; i < lost.size(); ++i) {
    if (!lost[i]) continue;
    ++lengths;
    if (i == 0 || !lost[i - 1]) ++runs;
  }
  const double z = (lengths / runs - 1 / (1 - p)) / std::sqrt(p / ((1 - p) * (1 - p)) / runs);
  EXPECT_LT(std::abs(z), critical_z);
}

TEST(Bernoulli, LosesTheSameIndicesWhateverTheTiming) {
  const auto one = make_loss(BernoulliConfig{0.1}, std::nullopt, stream);
  const auto other = make_loss(BernoulliConfig{0.1}, std::nullopt, stream);
  EXPECT_EQ(losses(*one, 10'000, {1052}, {10'000'000}), losses(*other, 10'000, {80}, {1'000'000}));
}

TEST(Bernoulli, LosesEverythingOrNothing) {
  const auto all = make_loss(BernoulliConfig{1}, std::nullopt, stream);
  const auto none = make_loss(BernoulliConfig{0}, std::nullopt, stream);
  EXPECT_TRUE(all->loses({}));
  EXPECT_FALSE(none->loses({}));
}

TEST(Poisson, MeanIntervalFollowsFromTheLossRate) {
  // 1,052 bytes at 10 Mb/s take 841.6 us; -ln(0.99) = 0.01005034 of an event falls into that.
  EXPECT_EQ(poisson_mean_interval({0.01, {1052}}, {10'000'000}), 83'738'495'138u);
  EXPECT_EQ(poisson_mean_interval({0, {1052}}, {10'000'000}), std::nullopt);
}

// H0: a full-size packet is lost with probability E.
TEST(Poisson, FullSizePacketsHaveTheLossRate) {
  for (double rate : {0.001, 0.01, 0.2}) {
    const auto model = make_loss(PoissonConfig{rate, {1052}}, Bitrate{10'000'000}, stream);
    EXPECT_LT(std::abs(z_of(losses(*model, 1'000'000, {1052}, {10'000'000}), rate)), critical_z);
  }
}

// H0: a packet of k L bytes is lost with probability 1 - (1 - E)^k.
TEST(Poisson, ShorterPacketsAreLostLess) {
  const auto model = make_loss(PoissonConfig{0.1, {1000}}, Bitrate{10'000'000}, stream);
  const double probability = 1 - std::pow(0.9, 0.1);
  EXPECT_LT(std::abs(z_of(losses(*model, 1'000'000, {100}, {10'000'000}), probability)),
            critical_z);
}

TEST(Poisson, EventsAreAtTheSameInstantsWhateverTheTraffic) {
  // What a packet that covers [0, 1 s) in one piece meets, its thousandths meet together.
  const auto whole = make_loss(PoissonConfig{0.5, {1'250'000}}, Bitrate{10'000'000}, stream);
  const auto parts = make_loss(PoissonConfig{0.5, {1'250'000}}, Bitrate{10'000'000}, stream);
  std::uint64_t index = 0;
  for (int second = 0; second < 200; ++second) {
    const Instant start{std::chrono::seconds{second}};
    const bool lost = whole->loses({0, {1'250'000}, start, start + 1s});
    bool lost_in_parts = false;
    for (int part = 0; part < 1000; ++part) {
      const Instant from = start + part * 1ms;
      lost_in_parts |= parts->loses({index++, {1250}, from, from + 1ms});
    }
    EXPECT_EQ(lost, lost_in_parts) << second;
  }
}

TEST(Poisson, NeedsARate) {
  EXPECT_THROW(make_loss(PoissonConfig{0.1, {1000}}, std::nullopt, stream), std::invalid_argument);
}

}  // namespace
}  // namespace nagi::model
