// SPDX-License-Identifier: Apache-2.0
#include "service/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace nagi::runtime {
namespace {

TEST(Histogram, IsEmptyAtFirst) {
  const Histogram histogram;
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.quantile(0.5), 0u);
  EXPECT_TRUE(histogram.buckets().empty());
}

TEST(Histogram, IsExactForSmallValues) {
  Histogram histogram;
  for (int value = 0; value < 60; ++value) histogram.add(value);
  EXPECT_EQ(histogram.quantile(0.5), 30u);
  EXPECT_EQ(histogram.maximum(), 59u);
}

TEST(Histogram, CountsNegativeValuesAsZero) {
  Histogram histogram;
  histogram.add(-5);
  EXPECT_EQ(histogram.maximum(), 0u);
  EXPECT_EQ(histogram.count(), 1u);
}

TEST(Histogram, KeepsQuantilesWithinThreePercent) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> distribution(10, 3);
  Histogram histogram;
  std::vector<std::uint64_t> values;
  for (int i = 0; i < 100'000; ++i) {
    values.push_back(static_cast<std::uint64_t>(distribution(random)));
    histogram.add(static_cast<std::int64_t>(values.back()));
  }
  std::ranges::sort(values);
  for (double share : {0.01, 0.5, 0.9, 0.99, 0.999}) {
    const auto exact = static_cast<double>(values[static_cast<std::size_t>(share * 100'000)]);
    EXPECT_NEAR(static_cast<double>(histogram.quantile(share)), exact, exact / 32 + 1) << share;
  }
  EXPECT_EQ(histogram.maximum(), values.back());
  EXPECT_EQ(histogram.quantile(1), values.back());
}

TEST(Histogram, BucketsCoverEveryValue) {
  Histogram histogram;
  const std::vector<std::int64_t> values{0, 1, 31, 32, 63, 64, 65, 127, 128, 1'000'000, 1LL << 62};
  for (const std::int64_t value : values) histogram.add(value);
  std::uint64_t total = 0;
  std::uint64_t before = 0;
  for (const auto& [upper, number] : histogram.buckets()) {
    EXPECT_GE(upper, before);
    before = upper;
    total += number;
  }
  EXPECT_EQ(total, values.size());
  EXPECT_GE(before, std::uint64_t{1} << 62);
}

}  // namespace
}  // namespace nagi::runtime
