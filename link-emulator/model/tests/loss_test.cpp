// SPDX-License-Identifier: Apache-2.0
//
// Statistical tests are seeded. Each states its null hypothesis and is two-sided at significance
// 0.001 (|z| < 3.29).
#include "model/loss/loss.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

namespace nagi::model {
namespace {

using namespace std::chrono_literals;

constexpr double critical_z = 3.29;
const LossContext context{.rate = Bitrate{10'000'000},
                          .overhead = {},
                          .draws = {2008, 1, DirectionName::forward, Purpose::loss},
                          .state_draws = {2008, 1, DirectionName::forward, Purpose::loss_state}};

bool loses(LossModel& model, std::uint64_t index, Bytes size, Instant start, Instant end) {
  return model.loses(index, {.packet = {size}, .start = start, .end = end});
}

/// Packets back to back at `rate`; which of them are lost.
std::vector<bool> losses(LossModel& model, std::uint64_t packets, Bytes size, Bitrate rate) {
  std::vector<bool> lost;
  Instant at{};
  const Duration air{static_cast<std::int64_t>(size.count * 8'000'000'000 / rate.bits_per_second)};
  for (std::uint64_t index = 0; index < packets; ++index) {
    lost.push_back(loses(model, index, size, at, at + air));
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

TEST(NoLoss, IsNoModel) { EXPECT_EQ(make_loss(NoLoss{}, context), nullptr); }

// H0: each of 10^6 packets is lost with probability p.
TEST(Bernoulli, HasItsRate) {
  for (double probability : {0.001, 0.01, 0.5}) {
    const auto model = make_loss(BernoulliLoss{probability}, context);
    EXPECT_LT(std::abs(z_of(losses(*model, 1'000'000, {1052}, {10'000'000}), probability)),
              critical_z);
  }
}

// H0: losses are independent, so runs of losses have mean length 1 / (1 - p); n runs of variance
// p / (1 - p)^2 each.
TEST(Bernoulli, HasItsRunLengths) {
  const double p = 0.3;
  const auto model = make_loss(BernoulliLoss{p}, context);
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

// H0: a packet of n bits is lost with probability 1 - (1 - b)^n, whatever its size.
TEST(BernoulliBit, LosesLongPacketsMoreOften) {
  for (const std::uint64_t size : {40, 1052, 1500}) {
    const double b = 1e-5;
    const auto model = make_loss(BernoulliBitLoss{b}, context);
    const double probability = -std::expm1(static_cast<double>(8 * size) * std::log1p(-b));
    EXPECT_LT(std::abs(z_of(losses(*model, 1'000'000, {size}, {10'000'000}), probability)),
              critical_z);
  }
}

TEST(BernoulliBit, LosesNothingWithoutErrors) {
  const auto model = make_loss(BernoulliBitLoss{0}, context);
  const auto lost = losses(*model, 1'000, {1500}, {10'000'000});
  EXPECT_EQ(std::count(lost.begin(), lost.end(), true), 0);
}

/// Lengths of the runs of losses, and of the runs between them.
struct Runs {
  std::vector<double> lost;
  std::vector<double> kept;
};
Runs runs_of(const std::vector<bool>& lost) {
  Runs runs;
  for (std::size_t i = 0; i < lost.size(); ++i) {
    auto& lengths = lost[i] ? runs.lost : runs.kept;
    if (i == 0 || lost[i] != lost[i - 1]) lengths.push_back(0);
    ++lengths.back();
  }
  return runs;
}

/// How many standard deviations the mean of `n` values of known mean and variance is off.
double z_of_mean(const std::vector<double>& values, double mean, double variance) {
  const auto n = static_cast<double>(values.size());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return (sum / n - mean) / std::sqrt(variance / n);
}

// H0: with loss only in the bad state, all of it, runs of losses and between losses are geometric
// with means 1 / bad_to_good and 1 / good_to_bad, variances (1 - p) / p^2.
TEST(GilbertElliott, HasItsRunLengths) {
  const double p = 0.01;
  const double r = 0.25;
  const auto model = make_loss(GilbertElliottLoss{p, r, 0, 1}, context);
  const Runs runs = runs_of(losses(*model, 1'000'000, {1052}, {10'000'000}));
  EXPECT_LT(std::abs(z_of_mean(runs.lost, 1 / r, (1 - r) / (r * r))), critical_z);
  EXPECT_LT(std::abs(z_of_mean(runs.kept, 1 / p, (1 - p) / (p * p))), critical_z);
}

// H0: the share of losses is (r g + p b) / (p + r), g and b being the loss rates of the states. The
// losses are correlated: (1 + c) / (1 - c) times a Bernoulli channel's variance at most, where
// c = 1 - p - r is the correlation of states that follow each other.
TEST(GilbertElliott, HasItsRate) {
  const double p = 0.02;
  const double r = 0.2;
  const auto model = make_loss(GilbertElliottLoss{p, r, 0.01, 0.5}, context);
  const double share = (r * 0.01 + p * 0.5) / (p + r);
  const double c = 1 - p - r;
  const double z = z_of(losses(*model, 1'000'000, {1052}, {10'000'000}), share);
  EXPECT_LT(std::abs(z) / std::sqrt((1 + c) / (1 - c)), critical_z);
}

// H0: sojourns are exponential with their means. Packets back to back see them to a packet's time
// (100 us, 1,000 of which make a sojourn): bad ones as runs of losses. Variance: the mean squared.
TEST(Markov, HasItsSojourns) {
  const MarkovLoss config{200ms, 100ms, 0, 1};
  const auto model = make_loss(config, context);
  const Runs runs = runs_of(losses(*model, 1'000'000, {1250}, {100'000'000}));
  EXPECT_LT(std::abs(z_of_mean(runs.lost, 1000, 1000.0 * 1000)), critical_z);
  EXPECT_LT(std::abs(z_of_mean(runs.kept, 2000, 2000.0 * 2000)), critical_z);
}

// H0: in each state packets are lost with its probability. Which packets meet the bad state, a
// second model says that loses exactly those.
TEST(Markov, LosesByItsState) {
  const auto state = make_loss(MarkovLoss{200ms, 100ms, 0, 1}, context);
  const auto model = make_loss(MarkovLoss{200ms, 100ms, 0.02, 0.4}, context);
  const auto bad = losses(*state, 1'000'000, {1250}, {100'000'000});
  const auto lost = losses(*model, 1'000'000, {1250}, {100'000'000});
  std::vector<bool> lost_in_bad;
  std::vector<bool> lost_in_good;
  for (std::size_t i = 0; i < bad.size(); ++i) {
    (bad[i] ? lost_in_bad : lost_in_good).push_back(lost[i]);
  }
  EXPECT_LT(std::abs(z_of(lost_in_bad, 0.4)), critical_z);
  EXPECT_LT(std::abs(z_of(lost_in_good, 0.02)), critical_z);
}

TEST(Markov, ChangesAtTheSameInstantsWhateverTheTraffic) {
  const auto dense = make_loss(MarkovLoss{20ms, 10ms, 0, 1}, context);
  const auto sparse = make_loss(MarkovLoss{20ms, 10ms, 0, 1}, context);
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    const Instant start{i * 10us};
    const bool lost = loses(*dense, i, {100}, start, start + 10us);
    if (i % 700 == 0) {
      EXPECT_EQ(loses(*sparse, i, {100}, start, start + 10us), lost);
    }
  }
}

TEST(LossTrace, RepeatsWhatWasRecorded) {
  const auto model = make_loss(TraceLoss{{1, 3}, 5}, context);
  const auto lost = losses(*model, 12, {1000}, {8'000'000});
  EXPECT_EQ(lost, (std::vector<bool>{0, 1, 0, 1, 0, 0, 1, 0, 1, 0, 0, 1}));
}

TEST(Bernoulli, LosesTheSameIndicesWhateverTheTiming) {
  const auto one = make_loss(BernoulliLoss{0.1}, context);
  const auto other = make_loss(BernoulliLoss{0.1}, context);
  EXPECT_EQ(losses(*one, 10'000, {1052}, {10'000'000}), losses(*other, 10'000, {80}, {1'000'000}));
}

TEST(Bernoulli, LosesEverythingOrNothing) {
  const auto all = make_loss(BernoulliLoss{1}, context);
  const auto none = make_loss(BernoulliLoss{0}, context);
  EXPECT_TRUE(all->loses(0, {}));
  EXPECT_FALSE(none->loses(0, {}));
}

TEST(Poisson, MeanIntervalFollowsFromTheLossRate) {
  // 1,052 bytes at 10 Mb/s take 841.6 us; -ln(0.99) = 0.01005034 of an event falls into that.
  EXPECT_EQ((PoissonLoss{0.01, {1052}}.mean_interval({10'000'000}, {})), 83'738'495'138u);
  EXPECT_EQ((PoissonLoss{0.01, {1014}}.mean_interval({10'000'000}, {38})), 83'738'495'138u);
  EXPECT_EQ((PoissonLoss{0, {1052}}.mean_interval({10'000'000}, {})), std::nullopt);
}

// H0: a full-size packet is lost with probability E.
TEST(Poisson, FullSizePacketsHaveTheLossRate) {
  for (double rate : {0.001, 0.01, 0.2}) {
    const auto model = make_loss(PoissonLoss{rate, {1052}}, context);
    EXPECT_LT(std::abs(z_of(losses(*model, 1'000'000, {1052}, {10'000'000}), rate)), critical_z);
  }
}

// H0: a packet of k L bytes is lost with probability 1 - (1 - E)^k.
TEST(Poisson, ShorterPacketsAreLostLess) {
  const auto model = make_loss(PoissonLoss{0.1, {1000}}, context);
  const double probability = 1 - std::pow(0.9, 0.1);
  EXPECT_LT(std::abs(z_of(losses(*model, 1'000'000, {100}, {10'000'000}), probability)),
            critical_z);
}

TEST(Poisson, EventsAreAtTheSameInstantsWhateverTheTraffic) {
  // What a packet that covers [0, 1 s) in one piece meets, its thousandths meet together.
  const auto whole = make_loss(PoissonLoss{0.5, {1'250'000}}, context);
  const auto parts = make_loss(PoissonLoss{0.5, {1'250'000}}, context);
  std::uint64_t index = 0;
  for (int second = 0; second < 200; ++second) {
    const Instant start{std::chrono::seconds{second}};
    const bool lost = loses(*whole, 0, {1'250'000}, start, start + 1s);
    bool lost_in_parts = false;
    for (int part = 0; part < 1000; ++part) {
      const Instant from = start + part * 1ms;
      lost_in_parts |= loses(*parts, index++, {1250}, from, from + 1ms);
    }
    EXPECT_EQ(lost, lost_in_parts) << second;
  }
}

// H0: with overhead, which the rate server counts, a full-size packet is lost with probability E.
TEST(Poisson, CountsTheOverheadOfATransmission) {
  LossContext framed = context;
  framed.overhead = {200};
  const auto model = make_loss(PoissonLoss{0.01, {1000}}, framed);
  EXPECT_LT(std::abs(z_of(losses(*model, 1'000'000, {1200}, {10'000'000}), 0.01)), critical_z);
}

// H0: a packet is lost with the probability of the step in which its transmission begins.
TEST(BernoulliTrace, HasTheRateOfEachStep) {
  const auto model =
      make_loss(BernoulliTraceLoss{{{{0s, 0.0}, {1s, 0.02}, {3s, 0.3}}, 4s}}, context);
  std::vector<bool> lost[3];
  for (std::uint64_t index = 0; index < 400'000; ++index) {
    const Instant start{index * 1ms};
    const std::int64_t second = (index / 1000) % 4;
    lost[second == 0  ? 0
         : second < 3 ? 1
                      : 2]
        .push_back(loses(*model, index, {1000}, start, start + 1ms));
  }
  EXPECT_EQ(std::count(lost[0].begin(), lost[0].end(), true), 0);
  EXPECT_LT(std::abs(z_of(lost[1], 0.02)), critical_z);
  EXPECT_LT(std::abs(z_of(lost[2], 0.3)), critical_z);
}

TEST(Poisson, NeedsARate) {
  LossContext without_rate = context;
  without_rate.rate.reset();
  EXPECT_THROW(make_loss(PoissonLoss{0.1, {1000}}, without_rate), std::invalid_argument);
}

}  // namespace
}  // namespace nagi::model
