// SPDX-License-Identifier: Apache-2.0
//
// Changing a running link: schedules computed by hand.
#include <gtest/gtest.h>

#include <algorithm>

#include "model/direction.hpp"

namespace nagi::model {
namespace {

using namespace std::chrono_literals;

constexpr Bytes full{1000};

struct Running {
  explicit Running(const DirectionConfig& config) : link(config, 1, 0, DirectionName::forward) {}

  Direction link;
  std::vector<Departure> departures;

  void offer(std::uint64_t tag, Duration when) {
    link.offer({full, tag}, Instant{when}, departures);
  }
  void change(const DirectionConfig& config, Duration when) {
    link.change(config, Instant{when}, departures);
  }
  /// When each packet is delivered, by its tag; -1 if it is not.
  std::vector<Duration> deliveries(std::size_t packets) {
    link.advance(Instant{1000s}, departures);
    std::vector<Duration> at(packets + 1, Duration{-1});
    for (const Departure& departure : departures) {
      if (departure.fate == Fate::delivered) {
        at[departure.packet.tag] = departure.at.time_since_epoch();
      }
    }
    at.erase(at.begin());
    return at;
  }
};

DirectionConfig eight_megabits() {
  DirectionConfig config;
  config.rate = Bitrate{8'000'000};
  return config;
}

TEST(Change, OfTheRateHoldsAtOnce) {
  Running running(eight_megabits());
  running.offer(1, 0ms);
  running.offer(2, 0ms);
  DirectionConfig slower = eight_megabits();
  slower.rate = Bitrate{4'000'000};
  running.change(slower, 500us);  // half of packet 1 is left: 1 ms at the new rate
  EXPECT_EQ(running.deliveries(2), (std::vector<Duration>{1500us, 3500us}));
}

TEST(Change, OfADisciplineDoesNotCountTheTimeBeforeIt) {
  // Twenty packets wait 20 ms at most, the controller's target is 15. Of updates before the change,
  // when nothing waited yet, it would learn that the delay grows without an end.
  for (const Style style : {Style::as_linux, Style::as_rfc}) {
    DirectionConfig config = eight_megabits();
    DualPi2 discipline;
    discipline.style = style;
    config.queue = discipline;
    Running running(config);
    for (std::uint64_t tag = 1; tag <= 20; ++tag) {
      Packet packet{full, tag};
      packet.ecn = tag % 2 == 0 ? Ecn::ect1 : Ecn::not_ect;
      running.link.offer(packet, Instant{10s}, running.departures);
    }
    discipline.target = 16ms;
    config.queue = discipline;
    running.change(config, 10001ms);
    EXPECT_EQ(std::ranges::count(running.deliveries(20), Duration{-1}), 0);
  }
}

TEST(Change, ToNoRateEmptiesTheQueue) {
  Running running(eight_megabits());
  for (std::uint64_t tag = 1; tag <= 3; ++tag) running.offer(tag, 0ms);
  running.change({}, 1500us);
  EXPECT_EQ(running.link.held(), 0u);
  EXPECT_EQ(running.deliveries(3), (std::vector<Duration>{1ms, 1500us, 1500us}));
}

TEST(Change, OfTheQueueDropsNothingThatWaits) {
  Running running(eight_megabits());
  for (std::uint64_t tag = 1; tag <= 5; ++tag) running.offer(tag, 0ms);
  DirectionConfig shorter = eight_megabits();
  shorter.queue = DropTail{Packets{2}};
  running.change(shorter, 500us);
  running.offer(6, 600us);   // four wait
  running.offer(7, 3500us);  // one waits
  EXPECT_EQ(running.deliveries(7),
            (std::vector<Duration>{1ms, 2ms, 3ms, 4ms, 5ms, Duration{-1}, 6ms}));
}

TEST(Change, OfTheDelayLeavesWhatIsUnderWay) {
  DirectionConfig config;
  config.delay = Duration{50ms};
  Running running(config);
  running.offer(1, 0ms);
  config.delay = Duration{10ms};
  running.change(config, 5ms);
  running.offer(2, 5ms);  // would be there at 15 ms, but does not overtake
  running.offer(3, 45ms);
  EXPECT_EQ(running.deliveries(3), (std::vector<Duration>{50ms, 50ms, 55ms}));
}

TEST(Change, OfTheLossCountsPacketsOn) {
  DirectionConfig config;
  config.loss = TraceLoss{{0}, 4};
  Running running(config);
  for (std::uint64_t tag = 1; tag <= 2; ++tag) running.offer(tag, 1ms);
  config.loss = TraceLoss{{3}, 4};
  running.change(config, 2ms);
  for (std::uint64_t tag = 3; tag <= 5; ++tag) running.offer(tag, 3ms);
  // Packets 0 to 4: the first is lost, then the one with index 3.
  EXPECT_EQ(running.deliveries(5),
            (std::vector<Duration>{Duration{-1}, 1ms, 3ms, Duration{-1}, 3ms}));
}

}  // namespace
}  // namespace nagi::model
