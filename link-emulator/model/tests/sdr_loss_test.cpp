// SPDX-License-Identifier: Apache-2.0
//
// Losses by a table of a radio's receiver: interpolation, rates over noise and fading, shadowing.
// Statistical tests are seeded. Each states its null hypothesis and is two-sided at significance
// 0.001
// (|z| < 3.29).
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "model/loss/loss.hpp"

namespace nagi::model {
namespace {

using namespace std::chrono_literals;

constexpr double critical_z = 3.29;

LossContext context_of(std::uint64_t seed) {
  return {.rate = Bitrate{10'000'000},
          .overhead = {},
          .draws = {seed, 1, DirectionName::forward, Purpose::loss},
          .state_draws = {seed, 1, DirectionName::forward, Purpose::loss_state},
          .channel = {seed, 2}};
}

/// A packet of n bits is lost if one is, whose error rate falls by a decade in 2 dB.
double bit_error_rate(double snr_db) { return 1e-3 * std::pow(10.0, -(snr_db - 4) / 2); }
double error_rate(double snr_db, double bytes) {
  return -std::expm1(8 * bytes * std::log1p(-bit_error_rate(snr_db)));
}

std::vector<LossCurve> curves() {
  std::vector<LossCurve> made;
  for (const std::uint64_t bytes : {40, 500, 1500}) {
    LossCurve curve{bytes, {}, {}};
    for (double snr_db = 0; snr_db <= 20; snr_db += 0.5) {
      curve.snr_db.push_back(snr_db);
      curve.per.push_back(error_rate(snr_db, static_cast<double>(bytes)));
    }
    made.push_back(curve);
  }
  return made;
}

SdrLoss at_snr(double snr_db) {
  SdrLoss config;
  config.snr.snr_db.steps = {{Duration{0}, snr_db}};
  config.curves = curves();
  return config;
}

double lost_share(LossModel& model, std::uint64_t packets, std::uint64_t bytes, Duration apart,
                  Duration air) {
  std::uint64_t lost = 0;
  for (std::uint64_t index = 0; index < packets; ++index) {
    const Instant start = Instant{} + apart * static_cast<std::int64_t>(index);
    lost += model.loses(index, {.packet = {{bytes}}, .start = start, .end = start + air}) ? 1 : 0;
  }
  return static_cast<double>(lost) / static_cast<double>(packets);
}

TEST(LossTable, IsExactAtMeasuredPointsAndBetweenThem) {
  const LossTable table(curves());
  for (const double bytes : {40, 77, 500, 1000, 1500}) {
    for (const double snr_db : {4.0, 5.5, 7.3, 9.0, 12.2}) {
      const double expected = -8 * bytes * std::log1p(-bit_error_rate(snr_db));
      const double got =
          table.exponent(std::pow(10, snr_db / 10), static_cast<std::uint64_t>(bytes));
      EXPECT_NEAR(got / expected, 1, 2e-3) << bytes << " bytes at " << snr_db << " dB";
    }
  }
}

TEST(LossTable, NeverFallsWithTheLengthNorRisesWithTheSnr) {
  // Measured with errors of measurement: the longer packets seem to be lost less at 6 dB.
  const LossTable table({{100, {2, 4, 6, 8}, {1, 0.5, 0.02, 0}}, {1000, {3, 6, 9}, {1, 0.01, 0}}});
  double before = 1e9;
  for (double snr_db = -30; snr_db < 40; snr_db += 0.01) {
    const double snr = std::pow(10, snr_db / 10);
    double shorter = 0;
    for (const std::uint64_t bytes : {1, 100, 300, 1000, 1500}) {
      const double exponent = table.exponent(snr, bytes);
      EXPECT_GE(exponent, shorter * (1 - 1e-12));
      shorter = exponent;
    }
    EXPECT_LE(shorter, before * (1 + 1e-12));
    before = shorter;
  }
  EXPECT_EQ(table.exponent(1e9, 1000), 0);
  EXPECT_GT(table.exponent(0, 1000), 40);
}

TEST(ExpOfMinus, IsTheExponential) {
  for (double x = 0; x < 100; x += 0.37) EXPECT_NEAR(exp_of_minus(x) / std::exp(-x), 1, 1e-12);
  EXPECT_EQ(exp_of_minus(1e9), 0);
}

// H0: each of 10^6 packets is lost with the table's probability.
TEST(Sdr, HasTheRateOfItsTable) {
  for (const std::uint64_t bytes : {40, 1000}) {
    const auto model = make_loss(at_snr(9), context_of(2008));
    const double p = error_rate(9, static_cast<double>(bytes));
    const double share = lost_share(*model, 1'000'000, bytes, 1ms, 1ms);
    EXPECT_LT(std::abs(share - p) / std::sqrt(p * (1 - p) / 1e6), 4.0) << bytes;
  }
}

// H0: over flat Rayleigh fading, packets that are short beside it are lost with the mean of the
// table's rates over exponentially distributed SNRs. By 40 seeds of 1,000 packets, a second apart
// at 50 Hz.
TEST(Sdr, HasTheRateOfAFadingChannel) {
  double expected = 0;
  constexpr int steps = 200'000;
  const LossTable table(curves());
  for (int i = 0; i < steps; ++i) {
    const double power = -std::log((i + 0.5) / steps);
    expected += -std::expm1(-table.exponent(10 * power, 1000)) / steps;
  }
  double sum = 0;
  double squares = 0;
  constexpr int seeds = 40;
  for (int seed = 0; seed < seeds; ++seed) {
    SdrLoss config = at_snr(10);
    config.snr.fading = {FadingKind::rayleigh, 50, 0};
    const auto model = make_loss(config, context_of(static_cast<std::uint64_t>(seed)));
    const double share = lost_share(*model, 1000, 1000, 1s, 1us);
    sum += share;
    squares += share * share;
  }
  const double mean = sum / seeds;
  const double error = std::sqrt((squares / seeds - mean * mean) / (seeds - 1));
  EXPECT_LT(std::abs(mean - expected) / error, critical_z) << mean << " for " << expected;
}

TEST(Sdr, LosesInBurstsWhileTheChannelIsInAFade) {
  SdrLoss config = at_snr(20);
  config.snr.fading = {FadingKind::rayleigh, 5, 0};
  const auto model = make_loss(config, context_of(1));
  int lost = 0;
  int both = 0;
  bool before = false;
  for (std::uint64_t index = 0; index < 100'000; ++index) {
    const Instant start = Instant{} + 1ms * static_cast<std::int64_t>(index);
    const bool now = model->loses(index, {.packet = {{1000}}, .start = start, .end = start + 1ms});
    lost += now ? 1 : 0;
    both += now && before ? 1 : 0;
    before = now;
  }
  ASSERT_GT(lost, 1000);
  EXPECT_GT(both, lost * 0.7);  // independent losses would be some 5 %
}

TEST(Sdr, MeetsTheSameChannelWhateverTheTraffic) {
  SdrLoss config = at_snr(12);
  config.snr.fading = {FadingKind::rician, 30, 3};
  config.snr.shadowing = {6, 0.5};
  SnrCourse dense(config.snr, {7, 2});
  SnrCourse sparse(config.snr, {7, 2});
  for (std::int64_t i = 0; i < 50'000; ++i) {
    const Instant at{100us * i};
    const double snr = dense.at(at);
    if (i % 977 == 0) {
      EXPECT_EQ(sparse.at(at), snr);
    }
  }
  SnrCourse other(config.snr, {7, 3});
  EXPECT_NE(other.at(Instant{1s}), sparse.at(Instant{1s}));
}

TEST(Sdr, FollowsATrace) {
  SdrLoss config = at_snr(0);
  config.snr.snr_db = {{{0s, -10.0}, {1s, 30.0}}, 2s};
  const auto model = make_loss(config, context_of(1));
  for (std::uint64_t index = 0; index < 4000; ++index) {
    const Instant start = Instant{} + 1ms * static_cast<std::int64_t>(index);
    EXPECT_EQ(model->loses(index, {.packet = {{1000}}, .start = start, .end = start + 1ms}),
              index / 1000 % 2 == 0);
  }
}

// H0: shadowing in dB has mean 0, the deviation that is asked for, and the correlation
// exp(-t / decorrelation). By 4,000 seeds; correlations of normal deviates have deviation
// sqrt((1 + r^2) / n).
TEST(Shadowing, IsGudmundsonsProcess) {
  constexpr int seeds = 4000;
  const ShadowingConfig config{8, 2};
  for (const double lag : {0.0, 0.5, 2.0, 6.0}) {
    double mean = 0;
    double product = 0;
    for (int seed = 0; seed < seeds; ++seed) {
      const Shadowing shadowing(config, {static_cast<std::uint64_t>(seed), 0});
      const double now = shadowing.gain_db(3.3) / 8;
      mean += now / seeds;
      product += now * shadowing.gain_db(3.3 + lag) / 8 / seeds;
    }
    const double expected = std::exp(-lag / 2);
    EXPECT_LT(std::abs(mean) * std::sqrt(seeds), critical_z);
    EXPECT_LT(std::abs(product - expected) / std::sqrt((1 + expected * expected) / seeds),
              critical_z)
        << lag;
  }
}

}  // namespace
}  // namespace nagi::model
