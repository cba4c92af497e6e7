// SPDX-License-Identifier: Apache-2.0
//
// The schemes' arithmetic against their papers' formulas in real numbers, and at its limits.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "arithmetic/ack_thinning.h"
#include "arithmetic/arrival_rate.h"
#include "arithmetic/backlog.h"
#include "arithmetic/bandwidth.h"
#include "arithmetic/vegas.h"
#include "arithmetic/waves.h"
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

constexpr nagi_thinning_limits thinning_limits{2, 5, 9};
constexpr std::uint32_t mss = 1000;

/// A receiver whose kernel acknowledges every segment at once.
class ThinnedReceiver {
 public:
  /// Segment `number` comes, from 1; whether its ACK leaves.
  bool receives(std::uint32_t number) {
    ++arrived_;
    has_[number] = true;
    while (has_[next_]) ++next_;
    nagi_thinning_arrival(&state_, number * mss);
    return !nagi_thinning_keeps(&state_, (next_ - 1) * mss, arrived_, &thinning_limits);
  }
  void expires() { nagi_thinning_expire(&state_); }

 private:
  nagi_thinning state_{};
  std::uint32_t arrived_ = 0;
  std::uint32_t next_ = 1;
  std::array<bool, 100> has_{};
};

TEST(AckThinning, AcknowledgesEveryOneToEveryFourthSegment) {
  ThinnedReceiver receiver;
  std::vector<std::uint32_t> acknowledged;
  for (std::uint32_t segment = 1; segment <= 25; ++segment) {
    if (receiver.receives(segment)) acknowledged.push_back(segment);
  }
  // d is 1 for segment 1, 2 from 2 on, 3 from 5 on, 4 from 9 on.
  EXPECT_THAT(acknowledged, testing::ElementsAre(1, 3, 6, 10, 14, 18, 22));
}

TEST(AckThinning, CountsAnewFromAnAckThatTheTimerLetGo) {
  ThinnedReceiver receiver;
  for (std::uint32_t segment = 1; segment <= 10; ++segment) receiver.receives(segment);
  EXPECT_FALSE(receiver.receives(11));
  EXPECT_FALSE(receiver.receives(12));
  receiver.expires();
  for (const std::uint32_t segment : {13U, 14U, 15U}) EXPECT_FALSE(receiver.receives(segment));
  EXPECT_TRUE(receiver.receives(16));
}

TEST(AckThinning, LetsEveryAckGoWhileASegmentIsMissing) {
  ThinnedReceiver receiver;
  for (std::uint32_t segment = 1; segment <= 10; ++segment) receiver.receives(segment);
  for (const std::uint32_t segment : {12U, 13U, 15U, 16U}) EXPECT_TRUE(receiver.receives(segment));
  EXPECT_TRUE(receiver.receives(11)) << "a partial ACK: 14 is missing, too";
  EXPECT_TRUE(receiver.receives(14)) << "none is missing any more";
  EXPECT_FALSE(receiver.receives(17));
  EXPECT_TRUE(receiver.receives(11)) << "nothing new";
}

constexpr nagi_waves_limits waves_limits{12, 12, 24};

/// A receiver of waves.
class WaveReceiver {
 public:
  explicit WaveReceiver(nagi_waves_limits limits = waves_limits) : limits_(limits) {
    nagi_waves_start(&waves, &limits_);
  }
  /// `segments` come, one every `spacing_us`.
  void receives(std::uint32_t segments, std::uint32_t spacing_us) {
    for (std::uint32_t i = 0; i < segments; ++i) {
      now_us += spacing_us;
      receive_next();
    }
  }
  void receive_next() {
    nagi_waves_arrival(&waves, sequence, mss, now_us, &limits_);
    sequence += mss;
  }
  /// One is lost.
  void misses() {
    now_us += 1'000;
    sequence += mss;
  }

  nagi_waves waves{};
  std::uint32_t now_us = 0xffffff00;    // the clock wraps
  std::uint32_t sequence = 0xfffff000;  // and so do sequence numbers

 private:
  nagi_waves_limits limits_;
};

TEST(Waves, KeepTheirLevelAtASteadyRate) {
  WaveReceiver receiver;
  receiver.receives(24 * 50, 1'000);
  EXPECT_EQ(receiver.waves.level, 12'000'000U);
  // 24 segments from the first to the last, 23 ms later.
  EXPECT_EQ(receiver.waves.rate, (24'000'000U + 11) / 23);
}

TEST(Waves, FollowFigure1) {
  struct Case {
    std::uint32_t threshold;  // levels
    std::uint32_t spacing_us;
    double preserve, adjust, ratio;
  };
  for (const Case& each : {Case{11, 2'000, 0.618, 0.382, 0.5}, Case{12, 2'000, 0.382, 0.618, 0.5},
                           Case{11, 800, 0.382, 0.618, 1.25}, Case{12, 800, 0.5, 0.5, 1.25}}) {
    WaveReceiver receiver({12, each.threshold, 24});
    receiver.receives(24, 1'000);
    EXPECT_EQ(receiver.waves.level, 12'000'000U) << "the first wave has nothing to compare with";
    receiver.receives(24, each.spacing_us);
    const double level = 12 * (each.preserve + each.adjust * each.ratio);
    EXPECT_NEAR(receiver.waves.level / 1e6, level, 0.03) << each.threshold;
  }
}

TEST(Waves, StayBetweenOneAndTheLargestLevel) {
  WaveReceiver receiver;
  for (std::uint32_t spacing = 1'000; spacing > 10; spacing /= 2) receiver.receives(48, spacing);
  EXPECT_EQ(receiver.waves.level, 24'000'000U);
  for (std::uint32_t spacing = 10; spacing < 1'000'000; spacing *= 4)
    receiver.receives(48, spacing);
  EXPECT_EQ(nagi_waves_level(&receiver.waves), 1U);
  EXPECT_GE(receiver.waves.level, 1'000'000U);
}

TEST(Waves, AreNotPulledDownByRatesThatVaryALittle) {
  std::mt19937 draws(20);
  std::uniform_int_distribution<std::uint32_t> spacing_us(995, 1'005);
  WaveReceiver receiver;
  for (int wave = 0; wave < 1'000; ++wave) {
    receiver.receives(receiver.waves.segments, spacing_us(draws));
    ASSERT_GE(receiver.waves.level, 11'900'000U) << wave;
  }
}

TEST(Waves, TakeALossInTheMiddleForNoChange) {
  WaveReceiver receiver;
  receiver.receives(48, 1'000);
  const std::uint32_t rate = receiver.waves.rate;
  receiver.receives(10, 1'000);
  receiver.misses();
  receiver.receives(13, 1'000);
  EXPECT_EQ(receiver.waves.rate, rate);
  EXPECT_EQ(receiver.waves.level, 12'000'000U);
}

TEST(Waves, AreDecidedByTheTimerIfTheLastSegmentIsLost) {
  WaveReceiver receiver;
  receiver.receives(48, 1'000);
  const std::uint32_t start = receiver.now_us + 1'000;
  receiver.receives(23, 1'000);
  receiver.misses();
  // The wave should take 23 ms; the timer goes off 46 ms after its first segment.
  receiver.now_us = start + 45'000;
  EXPECT_EQ(receiver.waves.level, 12'000'000U);
  receiver.now_us = start + 92'000;
  receiver.receive_next();
  EXPECT_EQ(receiver.waves.threshold, 6'000'000U);
  // A quarter of the rate, and now above the threshold.
  EXPECT_NEAR(receiver.waves.level / 1e6, 12 * (0.618 + 0.382 / 4), 0.05);
}

TEST(Waves, TakeALowerLevelOneWaveLater) {
  WaveReceiver receiver({12, 24, 24});
  receiver.receives(24, 1'000);
  receiver.receives(24, 2'000);
  EXPECT_EQ(nagi_waves_level(&receiver.waves), 8U);
  EXPECT_EQ(receiver.waves.segments, 23) << "what the ACKs before have let out";
  receiver.receives(23, 2'000);
  EXPECT_EQ(receiver.waves.segments, 2 * nagi_waves_level(&receiver.waves));
}

}  // namespace
