// SPDX-License-Identifier: Apache-2.0
#include "traffic/output_port.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace nagi::p4 {
namespace {

using nagi::Bytes;

Instant at(std::int64_t ns) { return Instant{Duration{ns}}; }

struct Sent {
  int item;
  std::int64_t from;
  std::int64_t until;
  std::uint32_t depth_at_enqueue;
  std::uint32_t depth_at_dequeue;
};

/// A port whose egress program does not change packets, or does what `becomes` says.
class Port {
 public:
  explicit Port(const QueueConfig& config) : port(config) {}

  std::optional<Refusal> offer(int item, std::uint64_t bytes, std::int64_t ns,
                               std::uint32_t priority = 0) {
    serve_until(ns);
    sizes_.resize(std::max<std::size_t>(sizes_.size(), static_cast<std::size_t>(item) + 1));
    sizes_[static_cast<std::size_t>(item)] = bytes;
    const auto refused = port.offer(item, {bytes}, priority, at(ns));
    serve(at(ns));
    return refused;
  }
  void serve_until(std::int64_t ns) {
    while (port.depth().now().packets > 0 && port.busy_until() <= at(ns)) serve(port.busy_until());
  }
  void serve(Instant now) {
    while (auto taken = port.take(now)) {
      const auto size = becomes(taken->item, sizes_[static_cast<std::size_t>(taken->item)]);
      if (!size) {
        port.drop();
        continue;
      }
      const Instant until = port.send({*size}, now);
      sent.push_back({taken->item, now.time_since_epoch().count(), until.time_since_epoch().count(),
                      taken->depth_at_enqueue, taken->depth_at_dequeue});
    }
  }

  OutputPort<int> port;
  std::vector<Sent> sent;
  std::function<std::optional<std::uint64_t>(int, std::uint64_t)> becomes =
      [](int, std::uint64_t bytes) { return std::optional(bytes); };

 private:
  std::vector<std::uint64_t> sizes_;
};

QueueConfig with_rate(std::uint64_t bits) {
  QueueConfig config;
  config.rates.bits = Bitrate{bits};
  return config;
}

std::vector<int> items(const std::vector<Sent>& sent) {
  std::vector<int> all;
  for (const Sent& each : sent) all.push_back(each.item);
  return all;
}

TEST(OutputPort, WithoutRatePacketsGoAtOnce) {
  Port port({});
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(port.offer(i, 1000, 5));
  ASSERT_EQ(port.sent.size(), 3U);
  EXPECT_EQ(port.sent[2].until, 5);
  EXPECT_EQ(port.port.depth().until(at(100)).maximum.packets, 0U);
}

TEST(OutputPort, KeepsTheRateExactlyOverABusyPeriod) {
  // 3 bytes at 7 bit/s: 24/7 s, no whole number of nanoseconds. The end of the n-th is rounded
  // once, not n times.
  Port port(with_rate(7));
  for (int i = 0; i < 1000; ++i) port.offer(i, 3, 0);
  port.serve_until(1'000'000'000'000'000);
  ASSERT_EQ(port.sent.size(), 1000U);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(port.sent[static_cast<std::size_t>(i)].until, (i + 1) * 24'000'000'000LL / 7);
  }
}

TEST(OutputPort, CountsPacketsExactly) {
  QueueConfig config;
  config.rates.packets = 3;
  Port port(config);
  for (int i = 0; i < 300; ++i) port.offer(i, 1 + static_cast<std::uint64_t>(i) * 7, 0);
  port.serve_until(1'000'000'000'000);
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(port.sent[static_cast<std::size_t>(i)].until, (i + 1) * 1'000'000'000LL / 3);
  }
}

TEST(OutputPort, OfTwoRatesTheSlowerHoldsForEachPacket) {
  QueueConfig config = with_rate(8'000'000);  // 1 us a byte
  config.rates.packets = 2'000;               // 500 us a packet
  Port port(config);
  port.offer(0, 100, 0);
  port.offer(1, 1000, 0);
  port.offer(2, 100, 0);
  port.serve_until(1'000'000'000);
  EXPECT_EQ(port.sent[0].until, 500'000);
  EXPECT_EQ(port.sent[1].until, 1'500'000);
  EXPECT_EQ(port.sent[2].until, 2'000'000);
}

TEST(OutputPort, OverheadCountsInTimeOnly) {
  QueueConfig config = with_rate(8'000'000);
  config.rates.overhead = Bytes{38};
  Port port(config);
  port.offer(0, 962, 0);
  EXPECT_EQ(port.sent[0].until, 1'000'000);
  EXPECT_EQ(port.port.counters().sent_bytes.count, 962U);
  EXPECT_EQ(port.port.counters().served_bytes.count, 1000U);
}

TEST(OutputPort, WhatEgressMakesOfAPacketIsWhatTakesTime) {
  Port port(with_rate(8'000'000));
  port.becomes = [](int item, std::uint64_t bytes) -> std::optional<std::uint64_t> {
    if (item == 1) return std::nullopt;      // dropped
    return item == 0 ? bytes + 500 : bytes;  // a header more
  };
  for (int i = 0; i < 3; ++i) port.offer(i, 1000, 0);
  port.serve_until(1'000'000'000);
  EXPECT_EQ(items(port.sent), (std::vector{0, 2}));
  EXPECT_EQ(port.sent[0].until, 1'500'000);
  EXPECT_EQ(port.sent[1].from, 1'500'000);
  EXPECT_EQ(port.sent[1].until, 2'500'000);
  EXPECT_EQ(port.port.counters().dropped_in_egress, 1U);
}

TEST(OutputPort, DropsTheTailByPackets) {
  QueueConfig config = with_rate(8'000'000);
  config.depth_packets = 2;
  Port port(config);
  EXPECT_FALSE(port.offer(0, 1000, 0));  // is being sent, does not wait
  EXPECT_FALSE(port.offer(1, 1000, 0));
  EXPECT_FALSE(port.offer(2, 1000, 0));
  EXPECT_EQ(port.offer(3, 1000, 0), Refusal::queue_full);
  EXPECT_FALSE(port.offer(4, 1000, 1'000'000));  // at the end of the first, the second leaves
  port.serve_until(1'000'000'000);
  EXPECT_EQ(items(port.sent), (std::vector{0, 1, 2, 4}));
  EXPECT_EQ(port.port.counters().queue_full, 1U);
  EXPECT_EQ(port.port.counters().queued, 4U);
}

TEST(OutputPort, DropsTheTailByBytes) {
  QueueConfig config = with_rate(8'000'000);
  config.depth_bytes = Bytes{1500};
  Port port(config);
  EXPECT_FALSE(port.offer(0, 9000, 0));  // nothing waits: it goes, however long
  EXPECT_FALSE(port.offer(1, 1000, 0));
  EXPECT_EQ(port.offer(2, 501, 0), Refusal::queue_full);
  EXPECT_FALSE(port.offer(3, 500, 0));
}

TEST(OutputPort, ServesTheHighestPriorityFirstAndInOrder) {
  QueueConfig config = with_rate(8'000'000);
  config.priorities = 3;
  config.depth_packets = 2;
  Port port(config);
  port.offer(0, 1000, 0, 0);
  port.offer(1, 1000, 1, 0);
  port.offer(2, 1000, 2, 2);
  port.offer(3, 1000, 3, 1);
  port.offer(4, 1000, 4, 2);
  port.offer(5, 1000, 5, 0);
  EXPECT_EQ(port.offer(6, 1000, 6, 0), Refusal::queue_full);  // of its own priority
  EXPECT_EQ(port.offer(7, 1000, 7, 3), Refusal::no_such_priority);
  port.serve_until(1'000'000'000);
  EXPECT_EQ(items(port.sent), (std::vector{0, 2, 4, 3, 1, 5}));
}

TEST(OutputPort, TellsTheDepthsThatAPacketSaw) {
  Port port(with_rate(8'000'000));
  for (int i = 0; i < 4; ++i) port.offer(i, 1000, 0);
  port.serve_until(1'000'000'000);
  EXPECT_EQ(port.sent[0].depth_at_enqueue, 0U);
  EXPECT_EQ(port.sent[3].depth_at_enqueue, 2U);
  EXPECT_EQ(port.sent[1].depth_at_dequeue, 2U);
  EXPECT_EQ(port.sent[3].depth_at_dequeue, 0U);
}

TEST(OutputPort, WeighsTheQueueByTime) {
  // Three packets of 1 ms at 0: two wait for 1 ms, one for another.
  Port port(with_rate(8'000'000));
  for (int i = 0; i < 3; ++i) port.offer(i, 1000, 0);
  port.serve_until(10'000'000);
  const auto all = port.port.depth().until(at(10'000'000));
  EXPECT_EQ(all.maximum.packets, 2U);
  EXPECT_EQ(all.maximum.bytes.count, 2000U);
  EXPECT_DOUBLE_EQ(all.mean_packets, 0.3);
  EXPECT_DOUBLE_EQ(all.mean_bytes, 300);
  EXPECT_DOUBLE_EQ(port.port.take_depth(at(10'000'000)).mean_packets, 0.3);
  const auto since = port.port.take_depth(at(20'000'000));
  EXPECT_EQ(since.maximum.packets, 0U);
  EXPECT_DOUBLE_EQ(since.mean_packets, 0);
  EXPECT_DOUBLE_EQ(port.port.depth().until(at(20'000'000)).mean_packets, 0.15);
}

TEST(OutputPort, AChangeOfRateHoldsInTheMiddleOfAPacket) {
  Port port(with_rate(8'000'000));
  port.offer(0, 1000, 0);
  port.offer(1, 1000, 0);
  port.port.change(with_rate(16'000'000), at(500'000));  // half is left
  EXPECT_EQ(port.port.busy_until(), at(750'000));
  port.serve_until(1'000'000'000);
  EXPECT_EQ(port.sent[1].until, 1'250'000);
  EXPECT_EQ(port.port.counters().serving, Duration{1'250'000});
}

TEST(OutputPort, ASmallerDepthLosesNothingThatWaits) {
  Port port(with_rate(8'000'000));
  for (int i = 0; i < 5; ++i) port.offer(i, 1000, 0);
  QueueConfig smaller = with_rate(8'000'000);
  smaller.depth_packets = 1;
  port.port.change(smaller, at(10));
  EXPECT_EQ(port.offer(5, 1000, 20), Refusal::queue_full);
  port.serve_until(1'000'000'000);
  EXPECT_EQ(items(port.sent), (std::vector{0, 1, 2, 3, 4}));
}

// For random arrivals: no loss is uncounted, no queue exceeds its limit, each priority stays in
// order, and the server never sends two packets at once and never idles while a packet waits.
TEST(OutputPort, KeepsItsBooksOverRandomArrivals) {
  std::mt19937 random(2008);
  const auto draw = [&](std::uint32_t below) {
    return static_cast<std::uint32_t>(random() % below);
  };
  for (int round = 0; round < 50; ++round) {
    QueueConfig config;
    if (draw(4) != 0) config.rates.bits = Bitrate{1'000'000 + draw(100'000'000)};
    if (draw(2) != 0) config.rates.packets = 100 + draw(100'000);
    if (draw(2) != 0) config.depth_packets = 1 + draw(20);
    if (draw(2) != 0) config.depth_bytes = Bytes{1500 + draw(20'000)};
    config.priorities = 1 + draw(4);
    Port port(config);
    std::int64_t now = 0;
    const int count = 500;
    std::vector<std::uint32_t> priorities(count);
    std::uint64_t refused = 0;
    for (int i = 0; i < count; ++i) {
      now += draw(200'000);
      priorities[static_cast<std::size_t>(i)] = draw(config.priorities);
      refused +=
          port.offer(i, 40 + draw(1460), now, priorities[static_cast<std::size_t>(i)]) ? 1U : 0U;
      if (config.depth_packets) {
        EXPECT_LE(port.port.depth().now().packets, *config.depth_packets * config.priorities);
      }
    }
    port.serve_until(1'000'000'000'000);
    EXPECT_EQ(port.sent.size() + refused, static_cast<std::size_t>(count));
    EXPECT_EQ(port.port.counters().queue_full, refused);
    EXPECT_EQ(port.port.depth().now().bytes.count, 0U);
    std::vector<int> last(config.priorities, -1);
    for (std::size_t i = 0; i < port.sent.size(); ++i) {
      const Sent& sent = port.sent[i];
      int& before = last[priorities[static_cast<std::size_t>(sent.item)]];
      EXPECT_LT(before, sent.item);
      before = sent.item;
      const std::int64_t free = i == 0 ? 0 : port.sent[i - 1].until;
      EXPECT_GE(sent.from, free);
    }
  }
}

}  // namespace
}  // namespace nagi::p4
