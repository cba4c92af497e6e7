// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "model/direction.hpp"
#include "model/marking/threshold.hpp"

namespace nagi::model {
namespace {

using namespace std::chrono_literals;

TEST(ThresholdMarking, WithWeight1IsTheQueue) {
  ThresholdMarking::Model average({Packets{3}, 1});
  EXPECT_FALSE(average.marks({3}, {3000}));
  EXPECT_TRUE(average.marks({4}, {4000}));
  EXPECT_FALSE(average.marks({0}, {0}));
}

TEST(ThresholdMarking, MovesByItsWeight) {
  // 10 packets wait each time: 5, 7.5, 8.75, 9.375.
  ThresholdMarking::Model average({Packets{8}, 0.5});
  EXPECT_FALSE(average.marks({10}, {}));
  EXPECT_FALSE(average.marks({10}, {}));
  EXPECT_TRUE(average.marks({10}, {}));
  // Idle for a packet's time: 4.375; then an empty queue: 2.1875. Then 10: 6.09, and 8.05.
  average.idle(1);
  EXPECT_FALSE(average.marks({0}, {}));
  EXPECT_FALSE(average.marks({10}, {}));
  EXPECT_TRUE(average.marks({10}, {}));
}

TEST(ThresholdMarking, CountsBytesIfTheThresholdDoes) {
  ThresholdMarking::Model average({Bytes{3000}, 1});
  EXPECT_FALSE(average.marks({100}, {3000}));
  EXPECT_TRUE(average.marks({1}, {3001}));
}

TEST(Marking, ForgetsOverAnIdleTime) {
  DirectionConfig config;
  config.rate = Bitrate{8'000'000};
  config.mark = ThresholdMarking{Packets{1}, 0.5};
  Direction link(config, 1, 0, DirectionName::forward);
  std::vector<Departure> departures;
  // Waiting as they come: 0 0 1 2 3 4 5 6 7; average after the last 6.0.
  for (std::uint64_t tag = 1; tag <= 9; ++tag) {
    link.offer({{1000}, tag, Ecn::ect0}, Instant{}, departures);
  }
  const auto marked_before = link.counters().marked;
  EXPECT_GT(marked_before, 0u);
  // All are sent at 9 ms. At 9 ms the average is about 6 and halves with the arrival: marked.
  link.offer({{1000}, 10, Ecn::ect0}, Instant{9ms}, departures);
  EXPECT_EQ(link.counters().marked, marked_before + 1);
  // Ten packets' time later nothing of it is left.
  link.offer({{1000}, 11, Ecn::ect0}, Instant{20ms}, departures);
  EXPECT_EQ(link.counters().marked, marked_before + 1);
}

}  // namespace
}  // namespace nagi::model
