// SPDX-License-Identifier: Apache-2.0
//
// Schedules of the rate server, computed by hand, and laws that hold for any of them.
#include "model/server.hpp"

#include <gtest/gtest.h>

#include <random>

namespace nagi::model {
namespace {

using namespace std::chrono_literals;

Instant at(Duration since_epoch) { return Instant{since_epoch}; }

// 8 Mb/s for 10 ms, nothing for 10 ms, 1 Mb/s for 10 ms, and again. 1,000 bytes take 1 ms, or 8.
Trace<Bitrate> stairs() { return {{{0ms, {8'000'000}}, {10ms, {0}}, {20ms, {1'000'000}}}, 30ms}; }

TEST(RateServer, FollowsASteppedRate) {
  RateServer server(stairs());
  EXPECT_EQ(server.begin({1000}, at(3ms), false), at(4ms));
  // From 9.5 ms: half of it at once, the rest (4,000 bits) from 20 ms on in 4 ms.
  EXPECT_EQ(server.begin({1000}, at(9500us), false), at(24ms));
  EXPECT_EQ(server.begin({1000}, at(15ms), false), at(28ms));
  // 2,000 bits until 30 ms, 6,000 after that at 8 Mb/s.
  EXPECT_EQ(server.begin({1000}, at(28ms), true), at(30750us));
  EXPECT_EQ(server.air_time({1000}, at(3030ms)), 1ms);  // a hundred periods on
}

TEST(RateServer, CountsPacketsThatTakeLessThanANanosecond) {
  // 40 bytes take 0.8 ns at 400 Gb/s: a thousand that arrive at one instant take 800 ns.
  RateServer server(Bitrate{400'000'000'000});
  Instant end = at(1s);
  for (int i = 0; i < 1000; ++i) end = server.begin({40}, end, /*at_once=*/end > at(1s));
  EXPECT_EQ(end, at(1s) + 800ns);
}

TEST(RateServer, PassesOverVeryManyPeriods) {
  // 5 kb/s for 10 ns of every 20: 8,000 bits in 3.2 s, less the 10 ns of silence at the end.
  RateServer server(Trace<Bitrate>{{{0ns, {5000}}, {10ns, {0}}}, 20ns});
  EXPECT_EQ(server.begin({1000}, at(0ms), false), at(3200ms) - 10ns);
  EXPECT_EQ(server.begin({1000}, at(5s) + 5ns, false), at(8200ms) + 5ns);
  // From 0 ms on, 150 ms: 15 periods of 3 Mb/s in the mean for 30 ms, and a part of one.
  RateServer slow(stairs());
  EXPECT_EQ(slow.begin({56'251}, at(0ms), false), at(150001us));
}

TEST(RateServer, HasTheMeanOfItsTrace) {
  EXPECT_EQ(mean_rate(stairs()), Bitrate{3'000'000});
  EXPECT_EQ(mean_rate(Opportunities{{1ms, 1ms, 2ms}, {1504}, 2ms}), Bitrate{18'048'000});
  EXPECT_EQ(mean_rate(Bitrate{7}), Bitrate{7});
  EXPECT_EQ(mean_rate(Unlimited{}), std::nullopt);
}

// As mahimahi has it: lines 1, 1 and 3, so at 1, 1, 3, 4, 4, 6, 7, 7, 9 ... ms.
TEST(RateServer, SendsAtOpportunities) {
  RateServer server(Opportunities{{1ms, 1ms, 3ms}, {1500}, 3ms});
  EXPECT_EQ(server.begin({1500}, at(0ms), false), at(1ms));
  EXPECT_EQ(server.begin({1500}, at(1ms), true), at(1ms));  // the second one of 1 ms
  EXPECT_EQ(server.begin({1000}, at(1ms), true), at(3ms));
  EXPECT_EQ(server.begin({600}, at(3ms), true), at(4ms));   // 500 bytes at 3 ms, 100 at 4
  EXPECT_EQ(server.begin({1400}, at(4ms), true), at(4ms));  // what is left of it
  EXPECT_EQ(server.begin({1500}, at(4ms), true), at(4ms));
  EXPECT_EQ(server.begin({100}, at(5ms), false), at(6ms));
  // What nobody used at 6 ms is lost.
  EXPECT_EQ(server.begin({1500}, at(6500us), false), at(7ms));
  EXPECT_EQ(server.begin({4000}, at(7ms), true), at(10ms));  // 1,500 at 7, 9 and 1,000 at 10
}

TEST(RateServer, WithoutARateIsThroughAtOnce) {
  RateServer server(Unlimited{});
  EXPECT_EQ(server.begin({1500}, at(5ms), false), at(5ms));
}

TEST(RateServer, GoesOnAtANewRate) {
  RateServer server(Bitrate{8'000'000});
  EXPECT_EQ(server.begin({1000}, at(0ms), false), at(1ms));
  // A quarter is sent; the rest takes 3 ms at a quarter of the rate.
  EXPECT_EQ(server.change(Bitrate{2'000'000}, at(250us)), at(3250us));
  EXPECT_EQ(server.change(Unlimited{}, at(1ms)), at(1ms));
  server.change(Opportunities{{3ms}, {1500}, 3ms}, at(2ms));
  EXPECT_EQ(server.begin({2000}, at(2ms), false), at(6ms));
  // 1,500 bytes left at 3 ms, 500 to go: 4 ms at 1 Mb/s.
  EXPECT_EQ(server.change(Bitrate{1'000'000}, at(4ms)), at(8ms));
}

/// The work that a server could have done from the epoch to `to`, in bits.
double capacity(const RateConfig& rate, Instant to) {
  const double seconds = std::chrono::duration<double>(to.time_since_epoch()).count();
  if (const auto* constant = std::get_if<Bitrate>(&rate)) {
    return seconds * static_cast<double>(constant->bits_per_second);
  }
  double bits = 0;
  const auto& trace = std::get<Trace<Bitrate>>(rate);
  for (Instant from{}; from < to;) {
    const auto stretch = trace.at(from);
    const Instant end = std::min(stretch.end, to);
    bits += static_cast<double>(stretch.value.bits_per_second) *
            std::chrono::duration<double>(end - from).count();
    from = end;
  }
  return bits;
}

class AnyTrace : public testing::TestWithParam<std::uint32_t> {};

// Over a busy period the server does exactly what its rate allows: never faster, never idle.
TEST_P(AnyTrace, IsFollowedExactly) {
  std::mt19937 random(GetParam());
  const auto between = [&random](std::uint64_t low, std::uint64_t high) {
    return std::uniform_int_distribution<std::uint64_t>(low, high)(random);
  };
  Trace<Bitrate> trace;
  Duration end{};
  for (int step = 0; step < 10; ++step) {
    trace.steps.push_back({end, {step % 3 == 2 ? 0 : between(1'000'000, 100'000'000)}});
    end += Duration{static_cast<std::int64_t>(between(1, 5'000'000))};
  }
  trace.period = end;
  RateServer server(trace);
  const Instant start{Duration{static_cast<std::int64_t>(between(0, 50'000'000))}};
  const double before = capacity(trace, start);
  Instant now = start;
  double bits = 0;
  for (int packet = 0; packet < 500; ++packet) {
    const Bytes size{between(40, 1500)};
    now = server.begin(size, now, packet != 0);
    bits += static_cast<double>(size.count) * 8;
    EXPECT_NEAR(capacity(trace, now) - before, bits, 0.2);  // 1 ns at 100 Mb/s is 0.1 bit
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, AnyTrace, testing::Range(0U, 30U));

// 1,000 bytes at 7,999,997 b/s take 375 ps more than 1 ms, when an outage of 10 s begins.
TEST(RateServer, WorkOfLessThanANanosecondWaitsForTheNextRate) {
  RateServer server(Trace<Bitrate>{
      {{0ms, Bitrate{7'999'997}}, {1ms, Bitrate{0}}, {10'001ms, Bitrate{8'000'000}}}, 20s});
  EXPECT_EQ(server.begin({1000}, Instant{0ms}, false), Instant{10'001ms});
}

// Full, the bucket holds 3,000 bytes: so much leaves at once. Then 1 byte a microsecond.
TEST(TokenBucket, LetsABurstPassThenKeepsTheRate) {
  RateServer server(TokenBucket{{8'000'000}, {3000}});
  EXPECT_EQ(server.begin({1500}, Instant{1ms}, false), Instant{1ms});
  EXPECT_EQ(server.begin({1500}, Instant{1ms}, true), Instant{1ms});
  EXPECT_EQ(server.begin({1500}, Instant{1ms}, true), Instant{2500us});
  EXPECT_EQ(server.begin({1500}, Instant{2500us}, true), Instant{4ms});
  // Idle for 2 ms it gains 2,000 bytes, and never holds more than 3,000.
  EXPECT_EQ(server.begin({1500}, Instant{6ms}, false), Instant{6ms});
  EXPECT_EQ(server.begin({1000}, Instant{6ms}, true), Instant{6500us});
  EXPECT_EQ(server.begin({3000}, Instant{1s}, false), Instant{1s});
  EXPECT_EQ(server.begin({1}, Instant{1s}, true), Instant{1s + 1us});
  // A packet that no burst holds waits until there are enough tokens.
  EXPECT_EQ(server.begin({5000}, Instant{2s}, false), Instant{2s + 2ms});
}

TEST(TokenBucket, IsExactOverABusyPeriod) {
  RateServer server(TokenBucket{{7'999'997}, {1}});
  Instant at{};
  for (int i = 0; i < 7'999'997 / 8; ++i) at = server.begin({1000}, at, i > 0);
  // 999,999 packets of 8,000 bits, one byte of which was there: 999.99999... s.
  const auto bits = static_cast<unsigned __int128>(999'999) * 8000 - 8;
  EXPECT_EQ(at.time_since_epoch().count(),
            static_cast<std::int64_t>((bits * 1'000'000'000 + 7'999'996) / 7'999'997) - 1);
}

TEST(TokenBucket, KeepsItsTokensWhenTheRateChanges) {
  RateServer server(TokenBucket{{8'000'000}, {3000}});
  EXPECT_EQ(server.begin({3000}, Instant{0ms}, false), Instant{0ms});
  EXPECT_EQ(server.begin({1000}, Instant{0ms}, true), Instant{1ms});
  // Half of the tokens are there after 0.5 ms; twice as fast the others take 0.25 ms.
  EXPECT_EQ(server.change(TokenBucket{{16'000'000}, {3000}}, Instant{500us}), Instant{750us});
  EXPECT_EQ(server.begin({1000}, Instant{750us}, true), Instant{1250us});
}

}  // namespace
}  // namespace nagi::model
