// SPDX-License-Identifier: Apache-2.0
#include "model/mark.hpp"

#include <gtest/gtest.h>

#include "model/link.hpp"

namespace nagi::model {
namespace {

using namespace std::chrono_literals;

TEST(QueueAverage, WithWeight1IsTheQueue) {
  QueueAverage average({Packets{3}, 1});
  EXPECT_FALSE(average.is_over({3}, {3000}));
  EXPECT_TRUE(average.is_over({4}, {4000}));
  EXPECT_FALSE(average.is_over({0}, {0}));
}

TEST(QueueAverage, MovesByItsWeight) {
  // 10 packets wait each time: 5, 7.5, 8.75, 9.375.
  QueueAverage average({Packets{8}, 0.5});
  EXPECT_FALSE(average.is_over({10}, {}));
  EXPECT_FALSE(average.is_over({10}, {}));
  EXPECT_TRUE(average.is_over({10}, {}));
  // Idle for a packet's time: 4.375; then an empty queue: 2.1875. Then 10: 6.09, and 8.05.
  average.idle(1);
  EXPECT_FALSE(average.is_over({0}, {}));
  EXPECT_FALSE(average.is_over({10}, {}));
  EXPECT_TRUE(average.is_over({10}, {}));
}

TEST(QueueAverage, CountsBytesIfTheThresholdDoes) {
  QueueAverage average({Bytes{3000}, 1});
  EXPECT_FALSE(average.is_over({100}, {3000}));
  EXPECT_TRUE(average.is_over({1}, {3001}));
}

TEST(Marking, MarksWhatIsCapableWhileTheQueueIsLong) {
  DirectionConfig config;
  config.rate = Bitrate{8'000'000};
  config.mark = MarkConfig{Packets{2}, 1};
  Direction link(config, 1, 0, Way::a_to_b);
  std::vector<Departure> departures;
  // The first is in transmission, the next three find 0, 1 and 2 waiting, the others more.
  for (std::uint64_t tag = 1; tag <= 8; ++tag) {
    link.offer({{1000}, tag, tag % 2 == 0}, Instant{}, departures);
  }
  link.advance(Instant{1s}, departures);
  std::vector<std::uint64_t> marked;
  for (const Departure& departure : departures) {
    if (departure.packet.marked) marked.push_back(departure.packet.tag);
  }
  EXPECT_EQ(marked, (std::vector<std::uint64_t>{6, 8}));
  EXPECT_EQ(link.counters().marked, 2u);
}

TEST(Marking, ForgetsOverAnIdleTime) {
  DirectionConfig config;
  config.rate = Bitrate{8'000'000};
  config.mark = MarkConfig{Packets{1}, 0.5};
  Direction link(config, 1, 0, Way::a_to_b);
  std::vector<Departure> departures;
  // Waiting as they come: 0 0 1 2 3 4 5 6 7; average after the last 6.0.
  for (std::uint64_t tag = 1; tag <= 9; ++tag) {
    link.offer({{1000}, tag, true}, Instant{}, departures);
  }
  const auto marked_before = link.counters().marked;
  EXPECT_GT(marked_before, 0u);
  // All are sent at 9 ms. At 9 ms the average is about 6 and halves with the arrival: marked.
  link.offer({{1000}, 10, true}, Instant{9ms}, departures);
  EXPECT_EQ(link.counters().marked, marked_before + 1);
  // Ten packets' time later nothing of it is left.
  link.offer({{1000}, 11, true}, Instant{20ms}, departures);
  EXPECT_EQ(link.counters().marked, marked_before + 1);
}

}  // namespace
}  // namespace nagi::model
