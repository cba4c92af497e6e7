// SPDX-License-Identifier: Apache-2.0
#include "model/random.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <set>

namespace nagi::model {
namespace {

// Known answers of Philox4x32-10 (Random123's kat_vectors): counter and key all zero, all one. A
// stream's counter is (index, index >> 32, link, way << 16 | purpose), its key the seed.
TEST(Stream, IsPhilox4x32With10Rounds) {
  EXPECT_EQ(Stream(0, 0, DirectionName::forward, Purpose::loss).draw(0), 0xe169c58d6627e8d5ULL);
  const Stream ones(~0ULL, ~0U, static_cast<DirectionName>(0xffff), static_cast<Purpose>(0xffff));
  EXPECT_EQ(ones.draw(~0ULL), 0x41c83b0e408f276dULL);
}

TEST(Stream, DiffersBySeedLinkDirectionAndIndex) {
  std::set<std::uint64_t> draws;
  for (std::uint64_t seed : {1, 2}) {
    for (std::uint32_t link : {0, 1}) {
      for (DirectionName direction : {DirectionName::forward, DirectionName::backward}) {
        const Stream stream(seed, link, direction, Purpose::loss);
        for (std::uint64_t index = 0; index < 100; ++index) draws.insert(stream.draw(index));
      }
    }
  }
  EXPECT_EQ(draws.size(), 800u);
}

TEST(Chance, NeverAndAlways) {
  for (std::uint64_t draw : {std::uint64_t{0}, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    EXPECT_FALSE(Chance(0).happens(draw));
    EXPECT_TRUE(Chance(1).happens(draw));
  }
}

TEST(Chance, IsExactAtItsThreshold) {
  EXPECT_TRUE(Chance(0.5).happens((std::uint64_t{1} << 63) - 1));
  EXPECT_FALSE(Chance(0.5).happens(std::uint64_t{1} << 63));
}

TEST(Chance, ToAPowerIsExact) {
  EXPECT_EQ(Chance(0.5).times(3).happens((std::uint64_t{1} << 61) - 1), true);
  EXPECT_EQ(Chance(0.5).times(3).happens(std::uint64_t{1} << 61), false);
  EXPECT_TRUE(Chance(1).times(1000).happens(~std::uint64_t{0}));
  EXPECT_TRUE(Chance(0.2).times(0).happens(~std::uint64_t{0}));
  EXPECT_TRUE(Chance(0.25).complement().happens((std::uint64_t{3} << 62) - 1));
  EXPECT_FALSE(Chance(0.25).complement().happens(std::uint64_t{3} << 62));
}

double in_double(std::uint64_t draw) {
  return -std::log((static_cast<double>(draw) + 1) * 0x1p-64);
}

TEST(Exponential, IsTheLogarithmInFixedPoint) {
  EXPECT_EQ(exponential_q40(~std::uint64_t{0}), 0u);  // -ln 1
  const Stream stream(7, 0, DirectionName::forward, Purpose::loss);
  for (std::uint64_t index = 0; index < 100'000; ++index) {
    const std::uint64_t draw = stream.draw(index);
    EXPECT_NEAR(static_cast<double>(exponential_q40(draw)) * 0x1p-40, in_double(draw), 0x1p-22);
  }
  for (unsigned bit = 0; bit < 64; ++bit) {
    const std::uint64_t draw = std::uint64_t{1} << bit;
    EXPECT_NEAR(static_cast<double>(exponential_q40(draw)) * 0x1p-40, in_double(draw), 0x1p-22);
  }
}

// These values are the contract with every other implementation: hardware, GNU Radio, Python.
TEST(Exponential, GivesTheSameBitsEverywhere) {
  EXPECT_EQ(exponential_q40(0), 48'775'896'626'291ULL);
  EXPECT_EQ(exponential_q40(0x8000000000000000ULL), 762'123'384'785ULL);
  EXPECT_EQ(exponential_q40(0x123456789abcdef0ULL), 2'906'571'830'283ULL);
}

TEST(Exponential, ScalesToItsMean) {
  // u = 1/2: ln 2 of the mean; 1 ms = 10^9 ps.
  EXPECT_EQ(exponential((std::uint64_t{1} << 63) - 1, 1'000'000'000), Duration{693'147});
}

// Quantiles from tables of the normal distribution.
TEST(StandardNormal, HasTheNormalQuantiles) {
  const auto quantile = [](double p) {
    return standard_normal(static_cast<std::uint64_t>(std::ldexp(p, 64)));
  };
  EXPECT_NEAR(quantile(0.5), 0, 1e-9);
  EXPECT_NEAR(quantile(0.8413447460685429), 1, 1e-6);
  EXPECT_NEAR(quantile(0.975), 1.959963984540054, 1e-6);
  EXPECT_NEAR(quantile(0.025), -1.959963984540054, 1e-6);
  EXPECT_NEAR(quantile(0.9986501019683699), 3, 1e-6);
  EXPECT_NEAR(quantile(1e-9), -5.997807015007687, 1e-6);
  EXPECT_NEAR(standard_normal(0), -9.0801551, 1e-6);  // 2^-64
  EXPECT_EQ(standard_normal(0), -standard_normal(~std::uint64_t{0}));
}

TEST(StandardNormal, GivesTheSameBitsEverywhere) {
  EXPECT_EQ(std::bit_cast<std::uint64_t>(standard_normal(0x123456789abcdef0ULL)),
            0xbff77b26344b8ab6ULL);
}

}  // namespace
}  // namespace nagi::model
