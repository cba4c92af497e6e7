// SPDX-License-Identifier: Apache-2.0
//
// The schemes' arithmetic against their papers' formulas in real numbers, and at its limits.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>

#include "arithmetic/arrival_rate.h"
#include "arithmetic/backlog.h"
#include "arithmetic/bandwidth.h"
#include "arithmetic/vegas.h"
#include "arithmetic/window.h"

namespace {

constexpr std::uint32_t no_limit = 0xffffffff;
constexpr std::uint32_t no_threshold = 0x7fffffff;

TEST(SequenceNumber, ComesAfterAcrossTheWrap) {
  EXPECT_TRUE(nagi_after(2, 1));
  EXPECT_FALSE(nagi_after(1, 2));
  EXPECT_FALSE(nagi_after(7, 7));
  EXPECT_TRUE(nagi_after(5, 0xfffffff0));
  EXPECT_FALSE(nagi_after(0xfffffff0, 5));
}

TEST(Window, DoublesARoundTripInSlowStart) {
  nagi_window window{1, no_threshold, 0};
  for (const std::uint32_t expected : {2U, 4U, 8U, 16U, 32U}) {
    const std::uint32_t acks = window.cwnd;
    for (std::uint32_t i = 0; i < acks; ++i) nagi_window_grow(&window, 1, no_limit);
    EXPECT_EQ(window.cwnd, expected);
  }
}

TEST(Window, GrowsByOneARoundTripFromTheThresholdOn) {
  nagi_window window{6, 8, 0};
  nagi_window_grow(&window, 2, no_limit);
  EXPECT_EQ(window.cwnd, 8U);
  for (std::uint32_t expected = 9; expected < 40; ++expected) {
    const std::uint32_t acks = window.cwnd;
    for (std::uint32_t i = 0; i < acks; ++i) nagi_window_grow(&window, 1, no_limit);
    EXPECT_EQ(window.cwnd, expected);
  }
}

TEST(Window, GrowsAlikeHoweverAcksAreMerged) {
  nagi_window one_by_one{20, 10, 0};
  nagi_window merged{20, 10, 0};
  for (int i = 0; i < 60; ++i) nagi_window_grow(&one_by_one, 1, no_limit);
  for (int i = 0; i < 12; ++i) nagi_window_grow(&merged, 5, no_limit);
  EXPECT_EQ(one_by_one.cwnd, merged.cwnd);
  EXPECT_EQ(one_by_one.credit, merged.credit);
}

TEST(Window, ChangesFromSlowStartToAvoidanceWithinOneAck) {
  nagi_window window{9, 10, 0};
  nagi_window_grow(&window, 5, no_limit);
  EXPECT_EQ(window.cwnd, 10U);
  EXPECT_EQ(window.credit, 4U);
}

TEST(Window, StaysBelowItsLimit) {
  nagi_window window{90, no_threshold, 0};
  nagi_window_grow(&window, 64, 100);
  EXPECT_EQ(window.cwnd, 100U);
}

TEST(Window, HalvesWhatIsOutstanding) {
  EXPECT_EQ(nagi_half(39, 41), 19U);  // limited transmit's two segments do not count
  EXPECT_EQ(nagi_half(39, 20), 10U);  // what is not used does not either
  EXPECT_EQ(nagi_half(3, 3), 2U);
  EXPECT_EQ(nagi_half(1, 1), 2U);
}

TEST(Backlog, IsThePapersDifference) {
  // 31 segments, 41.524 ms without and 46.5 ms with a queue.
  const double difference = (31 / 41.524e-3 - 31 / 46.5e-3) * 41.524e-3;
  EXPECT_EQ(nagi_backlog_milli(31, 41524, 46500), static_cast<std::uint32_t>(difference * 1000));
  EXPECT_TRUE(nagi_backlog_above(31, 41524, 46500, 3));
  EXPECT_FALSE(nagi_backlog_above(31, 41524, 46500, 4));
  EXPECT_TRUE(nagi_backlog_below(31, 41524, 46500, 4));
  EXPECT_FALSE(nagi_backlog_below(31, 41524, 46500, 3));
}

TEST(Backlog, IsNeitherBelowNorAboveWhatItEquals) {
  EXPECT_EQ(nagi_backlog_milli(20, 50, 100), 10'000U);
  EXPECT_FALSE(nagi_backlog_below(20, 50, 100, 10));
  EXPECT_FALSE(nagi_backlog_above(20, 50, 100, 10));
}

TEST(Backlog, HoldsForLargeWindowsAndLongRoundTrips) {
  EXPECT_EQ(nagi_backlog_milli(1'000'000, 1'000'000, 4'000'000), 750'000'000U);
  EXPECT_EQ(nagi_backlog_milli(10, 100, 100), 0U);
  EXPECT_EQ(nagi_backlog_milli(10, 0, 0), 0U);
}

/// Vegas's reaction to one round trip in which every measurement was `rtt_us`.
nagi_window after_round(nagi_window window, std::uint32_t rtt_us, std::uint8_t grows = 0,
                        nagi_vegas_limits limits = {2, 4, 1}) {
  nagi_vegas vegas{};
  vegas.base_us = 50'000;
  vegas.grows = grows;
  nagi_vegas_measured(&vegas, rtt_us);
  nagi_vegas_decide(&vegas, &window, &limits);
  return window;
}

TEST(Vegas, KeepsBetweenAlphaAndBeta) {
  // With a window of 20, RTT = BaseRTT x 20 / (20 - backlog).
  const auto rtt = [](double backlog) { return std::uint32_t(50'000 * 20 / (20 - backlog)); };
  EXPECT_EQ(after_round({20, 2, 0}, rtt(1.9)).cwnd, 21U);
  EXPECT_EQ(after_round({20, 2, 0}, rtt(2.1)).cwnd, 20U);
  EXPECT_EQ(after_round({20, 2, 0}, rtt(3.9)).cwnd, 20U);
  EXPECT_EQ(after_round({20, 2, 0}, rtt(4.1)).cwnd, 19U);
  EXPECT_EQ(after_round({3, 2, 0}, 500'000, 0, {0, 1, 1}).cwnd, 2U);
  EXPECT_EQ(after_round({2, 2, 0}, 500'000, 0, {0, 1, 1}).cwnd, 2U);
}

TEST(Vegas, ComparesInSlowStartOnlyAfterARoundTripThatDidNotGrow) {
  EXPECT_EQ(after_round({16, no_threshold, 0}, 60'000, 1).ssthresh, no_threshold);
  const nagi_window ended = after_round({16, no_threshold, 0}, 60'000, 0);
  EXPECT_EQ(ended.cwnd, 14U);
  EXPECT_EQ(ended.ssthresh, 2U);
  EXPECT_EQ(after_round({16, no_threshold, 0}, 51'000, 0).ssthresh, no_threshold);
}

TEST(Vegas, TakesTheMeanOfARoundTripAndTheLeastOfAll) {
  nagi_vegas vegas{};
  for (const std::uint32_t rtt : {60'000U, 50'000U, 70'000U}) nagi_vegas_measured(&vegas, rtt);
  nagi_window window{10, 2, 0};
  const nagi_vegas_limits limits{2, 4, 1};
  nagi_vegas_decide(&vegas, &window, &limits);
  EXPECT_EQ(vegas.base_us, 50'000U);
  EXPECT_EQ(vegas.rtt_us, 60'000U);
  EXPECT_EQ(vegas.count, 0U);
  const std::uint32_t size = window.cwnd;
  nagi_vegas_decide(&vegas, &window, &limits);  // nothing measured: nothing decided
  EXPECT_EQ(window.cwnd, size);
}

/// The paper's filter in real numbers, with a sample of 0 for every half tau without an ACK.
class Filter {
 public:
  explicit Filter(double tau) : tau_(tau) {}
  void sample(double bytes, double interval) {
    for (; interval > tau_ / 2; interval -= tau_ / 2) step(0, tau_ / 2);
    step(bytes / interval, interval);
  }
  [[nodiscard]] double rate() const { return rate_; }

 private:
  void step(double sample, double interval) {
    const double ratio = 2 * tau_ / interval;
    rate_ = (ratio - 1) / (ratio + 1) * rate_ + (sample + last_) / (ratio + 1);
    last_ = sample;
  }
  double tau_;
  double rate_ = 0;
  double last_ = 0;
};

TEST(Bandwidth, IsThePapersFilter) {
  std::mt19937 random(2001);
  nagi_bandwidth estimate{};
  Filter filter(0.5);
  std::uint64_t now = 1'000'000;
  nagi_bandwidth_ack(&estimate, now, 1448, 500'000, 1);
  for (int i = 0; i < 5000; ++i) {
    // Between 0.1 ms and 10 ms; now and then a silence in which samples of 0 are put in.
    const std::uint64_t interval = i % 1000 == 999 ? 700'000 : 100 + random() % 9'900;
    const std::uint32_t bytes = i % 3 == 0 ? 2896 : 1448;
    now += interval;
    nagi_bandwidth_ack(&estimate, now, bytes, 500'000, 1);
    filter.sample(bytes, static_cast<double>(interval) / 1e6);
    ASSERT_NEAR(static_cast<double>(estimate.rate), filter.rate(), 5 + filter.rate() * 1e-3) << i;
  }
}

TEST(Bandwidth, ConvergesToTheRateOfTheAcks) {
  nagi_bandwidth estimate{};
  for (std::uint64_t at = 1; at < 5'000'000; at += 1'500) {
    nagi_bandwidth_ack(&estimate, at, 1500, 500'000, 1);
  }
  EXPECT_NEAR(static_cast<double>(estimate.rate), 1e6, 1e3);
  EXPECT_EQ(nagi_bandwidth_window(&estimate, 100'000, 1500), 66U);
}

/// What the filter makes of 16 Mb/s whose ACKs come in pairs, 2 us apart.
std::uint64_t rate_of_pairs(std::uint32_t spacing_us) {
  nagi_bandwidth estimate{};
  for (std::uint64_t at = 1; at < 10'000'000; at += 1'000) {
    nagi_bandwidth_ack(&estimate, at, 1000, 500'000, spacing_us);
    nagi_bandwidth_ack(&estimate, at + 2, 1000, 500'000, spacing_us);
  }
  return estimate.rate;
}

TEST(Bandwidth, IsNotMisledByAcksInBurstsWithSpacing) {
  EXPECT_NEAR(static_cast<double>(rate_of_pairs(2'000)), 2e6, 2e4);
  // Without, the paper's trapezoids see a hundred times as much: what spacing is for.
  EXPECT_GT(rate_of_pairs(1), 100'000'000U);
}

TEST(Bandwidth, ForgetsInALongSilence) {
  nagi_bandwidth estimate{};
  for (std::uint64_t at = 1; at < 2'000'000; at += 1'000) {
    nagi_bandwidth_ack(&estimate, at, 1000, 500'000, 1'000);
  }
  nagi_bandwidth_ack(&estimate, 3'600'000'000, 1000, 500'000, 1'000);
  EXPECT_LT(estimate.rate, 10'000U);
}

TEST(Bandwidth, DoesNotOverflowAtAHundredGigabits) {
  nagi_bandwidth estimate{};
  for (std::uint64_t at = 1; at < 30'000'000; at += 50'000) {
    nagi_bandwidth_ack(&estimate, at, 625'000'000, 10'000'000, 50'000);
  }
  EXPECT_NEAR(static_cast<double>(estimate.rate), 12.5e9 * (1 - std::exp(-3.0)), 1e9);
}

TEST(ArrivalRate, IsTheFilterOfThePaper) {
  std::mt19937 draws(20);
  std::uniform_int_distribution<std::uint32_t> interval_ms(1, 40);
  std::uniform_int_distribution<std::uint32_t> segments(1, 30);
  nagi_arrival_rate estimate{};
  double expected = 0;
  std::uint32_t ticks = 0xfffffff0;                              // the clock wraps
  nagi_arrival_rate_ack(&estimate, ticks, 1000, 50'000, 1'000);  // the first says only when
  for (int i = 0; i < 10'000; ++i) {
    const std::uint32_t interval = interval_ms(draws);
    const std::uint32_t bytes = segments(draws) * 1000;
    const std::uint32_t rtt_us = 50'000 + 1'000 * segments(draws);
    ticks += interval;
    nagi_arrival_rate_ack(&estimate, ticks, bytes, rtt_us, 1'000);
    const double rtt = rtt_us / 1e6;
    expected = (rtt * expected + bytes) / (interval / 1e3 + rtt);
    ASSERT_NEAR(static_cast<double>(estimate.rate), expected, 5 + expected * 1e-4) << i;
  }
}

TEST(ArrivalRate, TakesWhatArrivesWithinATickForOneSample) {
  nagi_arrival_rate one{};
  nagi_arrival_rate many{};
  for (std::uint32_t ticks = 1; ticks < 1'000; ticks += 4) {
    nagi_arrival_rate_ack(&one, ticks, 4'000, 40'000, 1'000);
    for (int i = 0; i < 4; ++i) nagi_arrival_rate_ack(&many, ticks, 1'000, 40'000, 1'000);
  }
  EXPECT_NEAR(static_cast<double>(one.rate), 1e6, 1e4);
  EXPECT_NEAR(static_cast<double>(many.rate), 1e6, 1e4);
}

TEST(ArrivalRate, TakesAnOlderTimestampForTheLast) {
  nagi_arrival_rate estimate{};
  nagi_arrival_rate_ack(&estimate, 100, 1'000, 40'000, 1'000);
  nagi_arrival_rate_ack(&estimate, 104, 1'000, 40'000, 1'000);
  const std::uint64_t before = estimate.rate;
  nagi_arrival_rate_ack(&estimate, 102, 1'000, 40'000, 1'000);
  EXPECT_EQ(estimate.rate, before);
  nagi_arrival_rate_ack(&estimate, 108, 1'000, 40'000, 1'000);
  EXPECT_EQ(estimate.rate, (40'000 * before + 2'000'000'000) / 44'000);
}

}  // namespace
