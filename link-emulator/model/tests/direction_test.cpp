// SPDX-License-Identifier: Apache-2.0
//
// Properties that hold for any traffic; schedules computed by hand are in schedules.json.
#include "model/direction.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace nagi::model {
namespace {

using namespace std::chrono_literals;

constexpr Bytes full{1000};

Instant at(Duration since_epoch) { return Instant{since_epoch}; }

Direction make(const DirectionConfig& config, std::uint64_t seed = 1) {
  return {config, seed, 0, DirectionName::forward};
}

/// 8 Mb/s: 1,000 bytes take 1 ms.
DirectionConfig eight_megabits() {
  DirectionConfig config;
  config.rate = Bitrate{8'000'000};
  return config;
}

struct Event {
  std::uint64_t tag;
  Fate fate;
  Duration at;
  bool operator==(const Event&) const = default;
  friend void PrintTo(const Event& event, std::ostream* out) {
    *out << "packet " << event.tag << " fate " << static_cast<int>(event.fate) << " at "
         << event.at.count() << " ns";
  }
};

class Recorder {
 public:
  std::vector<Departure> departures;
  [[nodiscard]] std::vector<Event> events() const {
    std::vector<Event> all;
    for (const Departure& departure : departures) {
      all.push_back({departure.packet.tag, departure.fate, departure.at.time_since_epoch()});
    }
    return all;
  }
};

TEST(Direction, DelaysByItsDelay) {
  DirectionConfig config;
  config.delay = 45ms;
  Direction link = make(config);
  Recorder seen;
  link.offer({full, 1}, at(1ms), seen.departures);
  EXPECT_EQ(link.next_event(), at(46ms));
  link.advance(at(46ms) - 1ns, seen.departures);
  EXPECT_TRUE(seen.departures.empty());
  link.advance(at(46ms), seen.departures);
  EXPECT_EQ(seen.events(), (std::vector<Event>{{1, Fate::delivered, 46ms}}));
  EXPECT_EQ(link.next_event(), std::nullopt);
}

TEST(Direction, SaysBeforeWhenNothingIsDelivered) {
  DirectionConfig config = eight_megabits();
  config.delay = 20ms;
  Direction link = make(config);
  Recorder seen;
  EXPECT_EQ(link.min_delay(), 20ms);
  EXPECT_EQ(link.next_delivery(), std::nullopt);
  link.offer({Bytes{1000}, 1}, at(0ms), seen.departures);
  link.offer({Bytes{1000}, 2}, at(0ms), seen.departures);
  EXPECT_EQ(link.next_event(), at(1ms));
  EXPECT_EQ(link.next_delivery(), at(21ms));
  link.advance(at(21ms), seen.departures);
  EXPECT_EQ(seen.events(), (std::vector<Event>{{1, Fate::delivered, 21ms}}));
  EXPECT_EQ(link.next_delivery(), at(22ms));

  config.jitter = {UniformJitter{5ms}};
  EXPECT_EQ(make(config).min_delay(), 15ms);
  config.jitter = {UniformJitter{25ms}};
  EXPECT_EQ(make(config).min_delay(), 0ms);
  config.jitter = {ExponentialJitter{5ms}};
  EXPECT_EQ(make(config).min_delay(), 20ms);
  config.jitter = {NormalJitter{1us}};
  EXPECT_EQ(make(config).min_delay(), 0ms);
}

// Taking what is under way ahead of time, now and then, gives what waiting for each gives.
TEST(Direction, WhatIsTakenAheadIsDeliveredAllTheSame) {
  for (const bool keep_order : {true, false}) {
    DirectionConfig config;
    config.rate = Bitrate{8'000'000};
    config.delay = 20ms;
    config.jitter = {UniformJitter{15ms}};
    config.keep_order = keep_order;
    config.queue = DropTail{Packets{10}};
    config.loss = BernoulliLoss{0.1};
    Direction waited = make(config);
    Direction ahead = make(config);
    Recorder one;
    Recorder other;
    for (std::uint64_t tag = 0; tag < 500; ++tag) {
      const Instant arrival = at(tag * 900us);
      waited.offer({Bytes{1000}, tag}, arrival, one.departures);
      ahead.offer({Bytes{1000}, tag}, arrival, other.departures);
      if (tag % 3 == 0) ahead.take_in_flight(other.departures);
    }
    waited.advance(at(10s), one.departures);
    ahead.advance(at(10s), other.departures);
    const auto sorted = [](Recorder& seen) {
      auto events = seen.events();
      std::ranges::sort(events, {}, &Event::tag);
      return events;
    };
    EXPECT_EQ(sorted(one), sorted(other));
    EXPECT_EQ(waited.counters().delivered, ahead.counters().delivered);
    EXPECT_EQ(ahead.held(), 0u);
  }
}

/// A source of arbitrary configurations and traffic.
class Any {
 public:
  explicit Any(std::uint32_t seed) : random_(seed) {}

  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return std::uniform_int_distribution<std::uint64_t>(low, high)(random_);
  }
  bool coin() { return between(0, 1) == 1; }
  Duration duration(std::uint64_t maximum) {
    return Duration{static_cast<std::int64_t>(between(0, maximum))};
  }
  /// 800 bytes on average, as fast as the rate on average.
  Duration gap(Bitrate rate) {
    const double mean = 8e9 * 800 / static_cast<double>(rate.bits_per_second);
    return Duration{
        static_cast<std::int64_t>(std::exponential_distribution<double>(1 / mean)(random_))};
  }

  RateConfig rate() {
    const Bitrate mean{between(1'000, 1'000'000'000)};
    switch (between(0, 3)) {
      case 0:
        return mean;
      case 3:
        return TokenBucket{mean, Bytes{between(1, 20'000)}};
      case 1:
        return Trace<Bitrate>{{{Duration{0}, mean},
                               {Duration{10'000'000}, Bitrate{0}},
                               {Duration{30'000'000}, Bitrate{mean.bits_per_second / 2 + 1}}},
                              Duration{70'000'000}};
      default:
        return Opportunities{
            {Duration{0}, Duration{1'000'000}, Duration{1'000'000}}, {1504}, Duration{4'000'000}};
    }
  }
  JitterConfig jitter() {
    switch (between(0, 4)) {
      case 0:
        return {UniformJitter{duration(10'000'000)}};
      case 1:
        return {NormalJitter{duration(10'000'000)}};
      case 2:
        return {ExponentialJitter{duration(10'000'000)}};
      case 3:
        return {TableJitter{duration(10'000'000), {-1, 0, 2}}, 0.5, coin()};
      default:
        return {};
    }
  }
  LossConfig loss(bool constant_rate) {
    switch (between(0, constant_rate ? 7 : 6)) {
      case 0:
        return BernoulliLoss{0.1};
      case 1:
        return BernoulliBitLoss{1e-5};
      case 2:
        return GilbertElliottLoss{0.1, 0.3, 0.01, 0.5};
      case 3:
        return MarkovLoss{Duration{50'000'000}, Duration{5'000'000}, 0, 0.9};
      case 4:
        return TraceLoss{{1, 2, 7}, 10};
      case 5:
        return NoLoss{};
      case 6:
        return BernoulliTraceLoss{{{{Duration{0}, 0.0}, {Duration{1'000'000}, 0.5}}, 3ms}};
      default:
        return PoissonLoss{0.1, {1500}};
    }
  }
  QueueConfig queue() {
    QueueLimit limit = Packets{between(1, 50)};
    if (coin()) limit = Bytes{between(1500, 100'000)};
    switch (between(0, 5)) {
      case 0:
        return CoDel{.limit = limit, .ecn = coin()};
      case 1:
        return FqCoDel{.limit = limit, .ecn = coin(), .flows = between(1, 5)};
      case 2:
        return Pie{.limit = limit, .ecn = coin()};
      case 3:
        return DualPi2{.limit = limit};
      default:
        return DropTail{limit, coin()};
    }
  }
  EffectConfigs effects() {
    EffectConfigs all;
    if (coin()) std::get<0>(all) = Corruption{0.1};
    if (coin()) std::get<1>(all) = Duplication{0.1};
    if (coin()) std::get<2>(all) = Reordering{0.1, duration(10'000'000)};
    return all;
  }
  DirectionConfig direction() {
    DirectionConfig config;
    config.rate = rate();
    config.overhead = Bytes{between(0, 50)};
    if (coin()) {
      config.delay = duration(100'000'000);
    } else {
      config.delay = Trace<Duration>{
          {{Duration{0}, duration(50'000'000)}, {Duration{5'000'000}, duration(50'000'000)}},
          Duration{20'000'000}};
    }
    config.jitter = jitter();
    config.keep_order = coin();
    config.queue = queue();
    if (coin() && std::holds_alternative<DropTail>(config.queue)) {
      config.mark = ThresholdMarking{Packets{between(0, 20)}, 0.1};
    }
    config.effects = effects();
    config.loss = loss(std::holds_alternative<Bitrate>(config.rate));
    if (coin()) {
      config.loss_at = LossPoint::ingress;
    } else if (coin()) {
      config.arq = ArqConfig{static_cast<unsigned>(between(1, 3)), duration(10'000'000) + 1ns};
    }
    return config;
  }

 private:
  std::mt19937 random_;
};

/// Any traffic through any link, changed any number of times on the way: what must hold.
class AnyTraffic : public testing::TestWithParam<std::uint32_t> {};

TEST_P(AnyTraffic, KeepsTheLaws) {
  Any any(GetParam());
  DirectionConfig config = any.direction();
  const bool changes = any.coin();
  const auto keeps_order = [](const DirectionConfig& of) {
    return of.keep_order && !std::get<std::optional<Reordering>>(of.effects) &&
           (std::holds_alternative<DropTail>(of.queue) || std::holds_alternative<CoDel>(of.queue) ||
            std::holds_alternative<Pie>(of.queue));
  };
  bool always_in_order = keeps_order(config);
  Direction link = make(config, GetParam());
  Recorder seen;
  Instant now{};
  const std::uint64_t packets = 2000;
  std::vector<Instant> offered;
  for (std::uint64_t tag = 0; tag < packets; ++tag) {
    now += any.gap(*mean_rate(config.rate));
    offered.push_back(now);
    const Packet packet{.size = {any.between(40, 1500)},
                        .tag = tag,
                        .ecn = static_cast<Ecn>(any.between(0, 3)),
                        .flow = static_cast<std::uint32_t>(any.between(0, 9))};
    link.offer(packet, now, seen.departures);
    if (changes && any.between(0, 99) == 0) {
      const std::size_t held = link.held();
      const auto gone = [&link] {
        const DirectionCounters& count = link.counters();
        return count.delivered + count.channel_losses + count.aqm_drops;
      };
      const std::uint64_t left = gone();
      config = any.direction();
      always_in_order &= keeps_order(config);
      link.change(config, now, seen.departures);
      // What was held still is, or has left as a packet does: none was given up.
      EXPECT_EQ(link.held() + gone(), held + left);
    }
    const auto next = link.next_event();
    EXPECT_TRUE(!next || *next > now);
  }
  link.advance(at(10'000'000s), seen.departures);

  // Conservation: every packet leaves exactly once.
  const DirectionCounters& count = link.counters();
  EXPECT_EQ(link.held(), 0u);
  EXPECT_EQ(count.offered, packets);
  EXPECT_EQ(count.delivered + count.queue_overflows + count.aqm_drops + count.channel_losses,
            packets);
  std::vector<bool> left(packets);
  Instant latest{};
  std::uint64_t marked = 0;
  std::optional<std::uint64_t> last_delivered;
  std::uint64_t copies = 0;
  for (const Departure& departure : seen.departures) {
    EXPECT_FALSE(left[departure.packet.tag]);
    if (departure.is_copy) {
      ++copies;
      continue;
    }
    left[departure.packet.tag] = true;
    EXPECT_GE(departure.at, offered[departure.packet.tag]);
    EXPECT_TRUE(departure.packet.may_be_marked() || !departure.packet.marked);
    if (departure.fate != Fate::queue_overflow && departure.packet.marked) ++marked;
    if (departure.fate != Fate::delivered) continue;
    // Deliveries come in the order of their instants; of their arrivals, where order is kept.
    EXPECT_GE(departure.at, latest);
    latest = departure.at;
    if (always_in_order && last_delivered) {
      EXPECT_GT(departure.packet.tag, *last_delivered);
    }
    last_delivered = departure.packet.tag;
  }
  EXPECT_EQ(std::ranges::count(left, true), static_cast<std::ptrdiff_t>(packets));
  // What a change moved into another queue may have been marked before it is dropped there.
  if (changes) {
    EXPECT_LE(marked, count.marked);
  } else {
    EXPECT_EQ(marked, count.marked);
  }
  EXPECT_EQ(copies, count.duplicated);
}

INSTANTIATE_TEST_SUITE_P(Seeds, AnyTraffic, testing::Range(0U, 100U));

/// A link with a constant rate and delay: nothing is early, nothing is faster than the rate, and
/// the server is busy exactly for what it sends.
class ConstantRate : public testing::TestWithParam<std::uint32_t> {};

TEST_P(ConstantRate, IsKept) {
  Any any(GetParam());
  DirectionConfig config;
  const Bitrate rate{any.between(1'000, 1'000'000'000)};
  const Duration delay = any.duration(100'000'000);
  config.rate = rate;
  config.delay = delay;
  config.overhead = Bytes{any.between(0, 50)};
  config.queue = DropTail{Packets{any.between(1, 50)}};
  config.loss = any.loss(true);
  Direction link = make(config, GetParam());
  Recorder seen;
  std::vector<Instant> offered;
  Instant now{};
  for (std::uint64_t tag = 0; tag < 2000; ++tag) {
    now += any.gap(rate);
    offered.push_back(now);
    link.offer({{any.between(40, 1500)}, tag}, now, seen.departures);
  }
  link.advance(at(10'000'000s), seen.departures);

  const auto air = [&](const Departure& departure) {
    const std::uint64_t bytes = (departure.packet.size + config.overhead).count;
    return Duration{static_cast<std::int64_t>(bytes * 8'000'000'000 / rate.bits_per_second)};
  };
  const Departure* previous = nullptr;
  for (const Departure& departure : seen.departures) {
    if (departure.fate != Fate::delivered) continue;
    EXPECT_GE(departure.at, offered[departure.packet.tag] + air(departure) + delay);
    if (previous != nullptr) {
      EXPECT_GE(departure.at - previous->at, air(departure));
    }
    previous = &departure;
  }
  // What rounding takes is less than 1 ns a packet.
  const DirectionCounters& count = link.counters();
  const double busy = static_cast<double>(count.transmitted_bytes.count) * 8e9 /
                      static_cast<double>(rate.bits_per_second);
  EXPECT_NEAR(static_cast<double>(count.transmitting.count()), busy,
              static_cast<double>(count.transmitted));
}

INSTANTIATE_TEST_SUITE_P(Seeds, ConstantRate, testing::Range(0U, 30U));

TEST(Direction, MayReorderOnlyIfItIsTo) {
  // Sent at 0 and 1 ms; the delay falls from 20 ms to 5 ms in between.
  DirectionConfig config;
  config.delay = Trace<Duration>{{{0ms, Duration{20ms}}, {1ms, Duration{5ms}}}, 10ms};
  for (const bool keep_order : {true, false}) {
    config.keep_order = keep_order;
    Direction link = make(config);
    Recorder seen;
    link.offer({full, 1}, at(0ms), seen.departures);
    link.offer({full, 2}, at(1ms), seen.departures);
    link.advance(at(1s), seen.departures);
    const Event first{1, Fate::delivered, 20ms};
    if (keep_order) {
      EXPECT_EQ(seen.events(), (std::vector<Event>{first, {2, Fate::delivered, 20ms}}));
    } else {
      EXPECT_EQ(seen.events(), (std::vector<Event>{{2, Fate::delivered, 6ms}, first}));
    }
  }
}

TEST(Direction, GivesTheSameForTheSameArrivals) {
  DirectionConfig config = eight_megabits();
  config.loss = PoissonLoss{0.05, {1000}};
  config.queue = DropTail{Packets{10}};
  Direction one = make(config, 99);
  Direction other = make(config, 99);
  Direction differently_seeded = make(config, 100);
  Recorder first;
  Recorder second;
  Recorder third;
  for (std::uint64_t tag = 0; tag < 5000; ++tag) {
    const Instant when = at(tag * 900us);
    one.offer({full, tag}, when, first.departures);
    other.offer({full, tag}, when, second.departures);
    // Brought forward in many small steps, it does the same.
    other.advance(when + 300us, second.departures);
    differently_seeded.offer({full, tag}, when, third.departures);
  }
  one.advance(at(10s), first.departures);
  other.advance(at(10s), second.departures);
  differently_seeded.advance(at(10s), third.departures);
  const auto sorted = [](std::vector<Event> events) {
    std::ranges::sort(events, {}, &Event::tag);
    return events;
  };
  EXPECT_EQ(sorted(first.events()), sorted(second.events()));
  EXPECT_NE(sorted(first.events()), sorted(third.events()));
}

}  // namespace
}  // namespace nagi::model
