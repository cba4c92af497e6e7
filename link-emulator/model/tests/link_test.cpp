// SPDX-License-Identifier: Apache-2.0
//
// Schedules computed by hand, to the nanosecond, and properties that hold for any traffic.
#include "model/link.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace nagi::model {
namespace {

using namespace std::chrono_literals;

constexpr Bytes full{1000};

Instant at(Duration since_epoch) { return Instant{since_epoch}; }

Direction make(const DirectionConfig& config, std::uint64_t seed = 1) {
  return {config, seed, 0, Way::a_to_b};
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

TEST(Direction, WithoutAnythingDeliversAtOnce) {
  Direction link = make({});
  Recorder seen;
  link.offer({full, 1}, at(5ms), seen.departures);
  EXPECT_EQ(seen.events(), (std::vector<Event>{{1, Fate::delivered, 5ms}}));
}

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

TEST(Direction, TransmitsOneAfterTheOther) {
  DirectionConfig config = eight_megabits();
  config.delay = 10ms;
  Direction link = make(config);
  Recorder seen;
  link.offer({full, 1}, at(0ms), seen.departures);
  link.offer({{500}, 2}, at(0ms), seen.departures);    // waits until 1 ms, takes 0.5 ms
  link.offer({full, 3}, at(1200us), seen.departures);  // waits until 1.5 ms
  link.offer({full, 4}, at(5ms), seen.departures);     // finds the link idle
  link.advance(at(1s), seen.departures);
  EXPECT_EQ(seen.events(), (std::vector<Event>{{1, Fate::delivered, 11ms},
                                               {2, Fate::delivered, 11500us},
                                               {3, Fate::delivered, 12500us},
                                               {4, Fate::delivered, 16ms}}));
  EXPECT_EQ(link.counters().transmitting, 3500us);
}

TEST(Direction, CountsFramingOnTopOfIpBytes) {
  DirectionConfig config = eight_megabits();
  config.overhead = Bytes{250};
  Direction link = make(config);
  Recorder seen;
  link.offer({full, 1}, at(0ms), seen.departures);
  link.advance(at(1s), seen.departures);
  EXPECT_EQ(seen.events(), (std::vector<Event>{{1, Fate::delivered, 1250us}}));
  EXPECT_EQ(link.counters().delivered_bytes, full);
}

TEST(Direction, LosesNoTimeToRounding) {
  // 1,000 bytes at 3 Mb/s take 2,666,666 2/3 ns. Three of them take 8 ms, to the nanosecond.
  DirectionConfig config;
  config.rate = Bitrate{3'000'000};
  Direction link = make(config);
  Recorder seen;
  for (std::uint64_t tag = 1; tag <= 3000; ++tag) link.offer({full, tag}, at(0ms), seen.departures);
  link.advance(at(10s), seen.departures);
  EXPECT_EQ(seen.events()[0], (Event{1, Fate::delivered, 2'666'666ns}));
  EXPECT_EQ(seen.events()[1], (Event{2, Fate::delivered, 5'333'333ns}));
  EXPECT_EQ(seen.events()[2], (Event{3, Fate::delivered, 8ms}));
  EXPECT_EQ(seen.events()[2999], (Event{3000, Fate::delivered, 8s}));
}

TEST(Direction, DropsTheTailOfAFullQueueInPackets) {
  DirectionConfig config = eight_megabits();
  config.queue = Packets{2};
  Direction link = make(config);
  Recorder seen;
  for (std::uint64_t tag = 1; tag <= 5; ++tag) link.offer({full, tag}, at(0ms), seen.departures);
  // One in transmission, two waiting, two dropped on arrival.
  EXPECT_EQ(seen.events(),
            (std::vector<Event>{{4, Fate::queue_overflow, 0ms}, {5, Fate::queue_overflow, 0ms}}));
  EXPECT_EQ(link.counters().most_waiting, 2u);
  link.offer({full, 6}, at(1ms), seen.departures);  // at 1 ms packet 1 is out, so there is room
  EXPECT_EQ(link.counters().queue_overflows, 2u);
}

TEST(Direction, DropsTheTailOfAFullQueueInBytes) {
  DirectionConfig config = eight_megabits();
  config.queue = Bytes{1500};
  Direction link = make(config);
  Recorder seen;
  link.offer({full, 1}, at(0ms), seen.departures);   // in transmission
  link.offer({full, 2}, at(0ms), seen.departures);   // 1,000 waiting
  link.offer({full, 3}, at(0ms), seen.departures);   // 2,000 would be
  link.offer({{500}, 4}, at(0ms), seen.departures);  // 1,500: just fits
  EXPECT_EQ(seen.events(), (std::vector<Event>{{3, Fate::queue_overflow, 0ms}}));
}

TEST(Direction, LosesAtEgressOnlyAfterTransmission) {
  DirectionConfig config = eight_megabits();
  config.loss = BernoulliConfig{1};
  config.delay = 10ms;
  Direction link = make(config);
  Recorder seen;
  link.offer({full, 1}, at(0ms), seen.departures);
  link.offer({full, 2}, at(0ms), seen.departures);
  link.advance(at(1s), seen.departures);
  EXPECT_EQ(seen.events(),
            (std::vector<Event>{{1, Fate::channel_loss, 1ms}, {2, Fate::channel_loss, 2ms}}));
  EXPECT_EQ(link.counters().transmitted, 2u);
}

TEST(Direction, LosesAtIngressBeforeTheQueue) {
  DirectionConfig config = eight_megabits();
  config.loss = BernoulliConfig{1};
  config.loss_at = LossPlace::ingress;
  config.queue = Packets{1};
  Direction link = make(config);
  Recorder seen;
  for (std::uint64_t tag = 1; tag <= 5; ++tag) link.offer({full, tag}, at(0ms), seen.departures);
  EXPECT_EQ(link.counters().channel_losses, 5u);
  EXPECT_EQ(link.counters().queue_overflows, 0u);
  EXPECT_EQ(link.counters().transmitted, 0u);
}

TEST(Direction, BreaksTiesByTransmissionsFirst) {
  DirectionConfig config = eight_megabits();
  config.queue = Packets{1};
  Direction link = make(config);
  Recorder seen;
  link.offer({full, 1}, at(0ms), seen.departures);
  link.offer({full, 2}, at(0ms), seen.departures);
  link.offer({full, 3}, at(1ms), seen.departures);  // the instant packet 1 is out
  EXPECT_EQ(link.counters().queue_overflows, 0u);
}

/// Any traffic through any link: what must hold.
class AnyTraffic : public testing::TestWithParam<std::uint32_t> {};

TEST_P(AnyTraffic, KeepsTheLaws) {
  std::mt19937 random(GetParam());
  const auto between = [&random](std::uint64_t low, std::uint64_t high) {
    return std::uniform_int_distribution<std::uint64_t>(low, high)(random);
  };
  DirectionConfig config;
  config.rate = Bitrate{between(1'000, 1'000'000'000)};
  config.overhead = Bytes{between(0, 50)};
  config.delay = Duration{static_cast<std::int64_t>(between(0, 100'000'000))};
  if (between(0, 1) == 1) {
    config.queue = Packets{between(1, 50)};
  } else {
    config.queue = Bytes{between(1500, 100'000)};
  }
  config.loss_at = between(0, 1) == 1 ? LossPlace::ingress : LossPlace::egress;
  if (between(0, 1) == 1) {
    config.loss = BernoulliConfig{0.1};
  } else {
    config.loss = PoissonConfig{0.1, {1500}};
  }
  Direction link = make(config, GetParam());
  Recorder seen;
  Instant now{};
  const std::uint64_t packets = 2000;
  std::vector<Instant> offered;
  std::vector<Bytes> sizes;
  for (std::uint64_t tag = 0; tag < packets; ++tag) {
    const double mean_gap = 8e9 * 800 / static_cast<double>(config.rate->bits_per_second);
    now += Duration{
        static_cast<std::int64_t>(std::exponential_distribution<double>(1 / mean_gap)(random))};
    offered.push_back(now);
    sizes.push_back({between(40, 1500)});
    link.offer({sizes.back(), tag}, now, seen.departures);
    const auto next = link.next_event();
    EXPECT_TRUE(!next || *next > now);
  }
  link.advance(at(1'000'000s), seen.departures);

  // Conservation: every packet leaves exactly once.
  const DirectionCounters& count = link.counters();
  EXPECT_EQ(link.held(), 0u);
  EXPECT_EQ(count.offered, packets);
  EXPECT_EQ(count.delivered + count.queue_overflows + count.channel_losses, packets);
  std::vector<bool> left(packets);
  for (const Departure& departure : seen.departures) {
    EXPECT_FALSE(left[departure.packet.tag]);
    left[departure.packet.tag] = true;
  }
  EXPECT_EQ(std::ranges::count(left, true), static_cast<std::ptrdiff_t>(packets));

  // Order is kept, nothing is early, and nothing is faster than the rate.
  std::vector<Departure> delivered;
  std::ranges::copy_if(seen.departures, std::back_inserter(delivered),
                       [](const Departure& d) { return d.fate == Fate::delivered; });
  for (std::size_t i = 0; i < delivered.size(); ++i) {
    const auto air = [&](const Departure& d) {
      return Duration{static_cast<std::int64_t>((d.packet.size + config.overhead).count *
                                                8'000'000'000 / config.rate->bits_per_second)};
    };
    EXPECT_GE(delivered[i].at, offered[delivered[i].packet.tag] + air(delivered[i]) + config.delay);
    if (i == 0) continue;
    EXPECT_GT(delivered[i].packet.tag, delivered[i - 1].packet.tag);
    EXPECT_GE(delivered[i].at - delivered[i - 1].at, air(delivered[i]));
  }

  // Work-conserving: busy exactly for what it sent (less than 1 ns a packet is rounding).
  const double busy = static_cast<double>(count.transmitted_bytes.count) * 8e9 /
                      static_cast<double>(config.rate->bits_per_second);
  EXPECT_NEAR(static_cast<double>(count.transmitting.count()), busy,
              static_cast<double>(count.transmitted));
}

INSTANTIATE_TEST_SUITE_P(Seeds, AnyTraffic, testing::Range(0U, 50U));

TEST(Direction, GivesTheSameForTheSameArrivals) {
  DirectionConfig config = eight_megabits();
  config.loss = PoissonConfig{0.05, {1000}};
  config.queue = Packets{10};
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
