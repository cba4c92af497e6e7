// SPDX-License-Identifier: Apache-2.0
#include "native/match.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>

#include "made.hpp"

namespace nagi::captures {
namespace {

using namespace made;

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t second = 1000 * ms;

/// Two captures of a path.
struct Path {
  std::array<std::vector<Timed>, 2> captures;

  void add(int side, std::int64_t time_ns, const Segment& segment) {
    captures[static_cast<std::size_t>(side)].push_back({time_ns, frame(segment)});
  }
  Matcher& matched(MatchOptions options = {}) {
    for (std::size_t side = 0; side < 2; ++side) {
      std::stable_sort(captures[side].begin(), captures[side].end(),
                       [](const Timed& a, const Timed& b) { return a.time_ns < b.time_ns; });
      files[side] = pcap(captures[side]);
    }
    Matcher& matcher = matchers.emplace_back(
        [this](int side) {
          const Bytes& file = files[static_cast<std::size_t>(side)];
          return std::make_unique<CaptureFile>(file.data(), file.size());
        },
        options);
    while (matcher.work(1000)) {
    }
    return matcher;
  }
  std::array<Bytes, 2> files;
  std::deque<Matcher> matchers;
};

Segment number(std::uint32_t i) {
  return {.sequence = 1 + 100 * i, .acknowledgement = 1, .payload = 100};
}
Segment answer(std::uint32_t i) {
  return {.sequence = 1, .acknowledgement = 101 + 100 * i, .back = true};
}

TEST(Matching, DelaysAndLossesOfBothDirections) {
  for (const std::int64_t ahead : {std::int64_t{0}, 3600 * second, -second / 2}) {  // the far clock
    Path path;
    for (std::uint32_t i = 0; i < 1000; ++i) {
      const std::int64_t at = 5000 * second + i * ms;
      const std::int64_t delay = 20 * ms + (i % 10) * ms;
      path.add(0, at, number(i));
      if (i % 100 == 50) continue;
      path.add(1, at + delay + ahead, number(i));
      path.add(1, at + delay + ahead + 1, answer(i));
      if (i % 100 != 70) path.add(0, at + delay + 1 + 15 * ms, answer(i));
    }
    Matcher& matcher = path.matched();
    ASSERT_EQ(matcher.connections().size(), 1);
    const MatchedDirection& forth = matcher.connections()[0].directions[0];
    const MatchedDirection& back = matcher.connections()[0].directions[1];
    EXPECT_TRUE(forth.forward);
    EXPECT_FALSE(back.forward);
    EXPECT_EQ(forth.sent, 1000);
    EXPECT_EQ(forth.lost, 10);
    EXPECT_EQ(forth.data_lost, 10);
    EXPECT_EQ(back.sent, 990);
    EXPECT_EQ(back.lost, 10);
    EXPECT_EQ(back.data_sent, 0);
    EXPECT_EQ(forth.unseen + back.unseen + forth.uncovered + back.uncovered, 0);
    EXPECT_EQ(forth.smallest_delay(), 20 * ms + ahead);
    EXPECT_EQ(back.smallest_delay(), 15 * ms - ahead);
    EXPECT_EQ(forth.queueing.max(), 9 * ms);
    EXPECT_NEAR(forth.queueing.quantile(0.5), 5 * ms, 0.01 * 5 * ms);  // the 495th of 990
    EXPECT_EQ(matcher.smallest().forward, 20 * ms + ahead);
    EXPECT_EQ(matcher.smallest().backward, 15 * ms - ahead);
    EXPECT_EQ(forth.pattern.gaps().count, 1);
    EXPECT_EQ(forth.pattern.gaps().lost, 10);
    EXPECT_EQ(forth.pattern.bursts().count, 0);
  }
}

TEST(Matching, CopiesAreMatchedInTheirOrder) {
  Path path;
  for (std::uint32_t i = 0; i < 100; ++i) {
    path.add(0, i * ms, number(7));
    path.add(1, i * ms + 30 * ms, number(7));
  }
  const Matcher& matcher = path.matched();
  EXPECT_EQ(matcher.smallest().forward, 30 * ms);
  EXPECT_EQ(matcher.smallest().backward, SmallestDelays::none);
}

TEST(Matching, EqualPacketsOfSeveralConnectionsAreKeptApart) {
  Path path;
  for (std::uint32_t i = 0; i < 200; ++i) {
    for (std::uint16_t port = 1; port <= 8; ++port) {
      Segment segment = number(i);
      segment.port = port;
      path.add(0, i * ms, segment);
      // Each direction loses a different packet in ten.
      if (i % 10 != port) path.add(1, i * ms + 20 * ms + port, segment);
      segment.back = true;
      if (i % 10 != port) path.add(1, i * ms + 20 * ms + port, segment);
      path.add(0, i * ms + 50 * ms, segment);
    }
  }
  Matcher& matcher = path.matched({.complete = true});
  ASSERT_EQ(matcher.connections().size(), 8);
  for (const MatchedConnection& connection : matcher.connections()) {
    const auto port = ntohs(connection.endpoints[0].source_port());
    EXPECT_EQ(connection.directions[0].lost, 20);
    EXPECT_EQ(connection.directions[0].smallest_delay(), 20 * ms + port);
    EXPECT_EQ(connection.directions[0].queueing.max(), 0);
    EXPECT_EQ(connection.directions[1].unseen, 20);
  }
}

TEST(Matching, EdgesAreUncoveredUnlessTheCapturesAreComplete) {
  Path path;
  for (std::uint32_t i = 0; i < 100; ++i) {
    path.add(0, i * ms, number(i));
    if (i >= 20 && i < 80 && i != 50) path.add(1, i * ms + 10 * ms, number(i));
  }
  for (std::uint32_t i = 200; i < 205; ++i) path.add(1, 60 * ms, number(i));
  Matcher& partial = path.matched();
  const MatchedDirection& some = partial.connections()[0].directions[0];
  EXPECT_EQ(some.sent, 60);
  EXPECT_EQ(some.lost, 1);
  EXPECT_EQ(some.uncovered, 40);
  EXPECT_EQ(some.unseen, 5);
  Matcher& complete = path.matched({.complete = true});
  const MatchedDirection& every = complete.connections()[0].directions[0];
  EXPECT_EQ(every.sent, 100);
  EXPECT_EQ(every.lost, 41);
  EXPECT_EQ(every.uncovered, 0);
  Matcher& measured = path.matched({.start_ns = 45 * ms, .end_ns = 55 * ms});
  EXPECT_EQ(measured.connections()[0].directions[0].sent, 10);
  EXPECT_EQ(measured.connections()[0].directions[0].lost, 1);
}

TEST(Matching, DriftShowsInTheTenths) {
  Path path;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const std::int64_t at = i * 100 * ms;
    const std::int64_t ahead = at / 10'000;  // 100 ppm
    path.add(0, at, number(i));
    path.add(1, at + 10 * ms + ahead, number(i));
    path.add(1, at + 10 * ms + ahead + 1, answer(i));
    path.add(0, at + 20 * ms, answer(i));
  }
  const Matcher& matcher = path.matched();
  const auto offset = [](const SmallestDelays& delays) {
    return static_cast<double>(delays.forward - delays.backward) / 2;
  };
  // The smallest of the forward delays is at a tenth's begin, that of the others at its end.
  EXPECT_NEAR(offset(matcher.smallest_last()) - offset(matcher.smallest_first()), 0.9 * 10 * ms,
              0.1 * ms);
}

TEST(Matching, ClocksThatAreKnownAreTakenOff) {
  const std::int64_t begin = 5000 * second;
  const std::int64_t wrong = -3 * ms;  // and faster by 100 ppm for a second
  const auto ahead = [&](std::int64_t time) {
    return wrong + std::min(time - begin, second) / 10'000;
  };
  Path path;
  for (std::uint32_t i = 0; i < 2000; ++i) {
    const std::int64_t at = begin + i * ms;
    path.add(0, at, number(i));
    path.add(1, at + ms + ahead(at + ms), number(i));
    path.add(1, at + ms + 1 + ahead(at + ms + 1), answer(i));
    path.add(0, at + 2 * ms + 1, answer(i));
  }
  MatchOptions options{.complete = true};
  options.clocks[1] = ClockCurve({{begin + wrong, wrong}, {begin + second, ahead(begin + second)}});
  Matcher& matcher = path.matched(options);
  // 2 ms there by the far clock, which is 3 ms behind: without the knots packets would arrive
  // before they were sent.
  EXPECT_NEAR(static_cast<double>(matcher.smallest().forward), ms, 500);
  EXPECT_NEAR(static_cast<double>(matcher.smallest().backward), ms, 500);
  const MatchedDirection& forth = matcher.connections()[0].directions[0];
  EXPECT_TRUE(forth.forward);
  EXPECT_EQ(forth.lost, 0);
  EXPECT_LE(forth.queueing.max(), 1000);
}

TEST(ClockCurves, AreStraightBetweenKnotsAndLevelOutside) {
  EXPECT_EQ(ClockCurve().common(7), 7);
  const ClockCurve one({{100, 5}});
  EXPECT_EQ(one.common(0), -5);
  EXPECT_EQ(one.common(1000), 995);
  const ClockCurve two({{100, 10}, {200, -10}});
  EXPECT_EQ(two.common(50), 40);
  EXPECT_EQ(two.common(100), 90);
  EXPECT_EQ(two.common(125), 120);
  EXPECT_EQ(two.common(200), 210);
  EXPECT_EQ(two.common(300), 310);
}

TEST(Matching, SilenceIsNoLoss) {
  Path path;
  for (std::uint32_t i = 0; i < 400; ++i) {
    // After half of the packets there is a pause of 12 s, with packets in flight.
    const std::int64_t at = i * ms + (i < 200 ? 0 : 12 * second);
    path.add(0, at, number(i));
    path.add(1, at + 100 * ms, number(i));
    path.add(1, at + 100 * ms, answer(i));
    path.add(0, at + 200 * ms, answer(i));
  }
  for (const MatchedDirection& each : path.matched().connections()[0].directions) {
    EXPECT_EQ(each.sent, 400);
    EXPECT_EQ(each.lost, 0);
    EXPECT_EQ(each.unseen, 0);
  }
}

TEST(Matching, WhatComesTooLateIsLost) {
  Path path;
  for (std::uint32_t i = 0; i < 300; ++i) {
    const std::int64_t at = i * 100 * ms;
    path.add(0, at, number(i));
    path.add(1, at + (i == 50 ? longest_delay_ns + second : 20 * ms), number(i));
  }
  const MatchedDirection& forth = path.matched().connections()[0].directions[0];
  EXPECT_EQ(forth.sent, 300);
  EXPECT_EQ(forth.lost, 1);
}

TEST(Matching, PortsUsedAgainAreConnectionsOfTheirOwn) {
  Path path;
  std::int64_t now = 0;
  const auto pass = [&](Segment segment, bool arrives = true) {
    now += ms;
    path.add(segment.back ? 1 : 0, now, segment);
    if (arrives) path.add(segment.back ? 0 : 1, now + 20 * ms, segment);
  };
  for (const std::uint32_t first : {1000U, 2'000'000'000U}) {
    pass({.sequence = first, .flags = flag_syn});
    now += 50 * ms;
    pass({.sequence = 5, .acknowledgement = first + 1, .flags = flag_syn | flag_ack, .back = true});
    now += 50 * ms;
    for (std::uint32_t i = 0; i < 10; ++i) {
      const bool lost = first == 2'000'000'000U && i == 4;
      pass({.sequence = first + 1 + 100 * i, .acknowledgement = 6, .payload = 100}, !lost);
    }
    now += 50 * ms;
    pass({.sequence = first + 1001, .flags = flag_rst});
    now += 50 * ms;
  }
  Matcher& matcher = path.matched();
  ASSERT_EQ(matcher.connections().size(), 2);
  for (std::uint32_t each = 0; each < 2; ++each) {
    const MatchedConnection& connection = matcher.connections()[each];
    EXPECT_EQ(connection.numbers, (std::array{each, each}));
    EXPECT_TRUE(connection.directions[0].forward);
    EXPECT_EQ(connection.directions[0].data_sent, 10);
    EXPECT_EQ(connection.directions[0].data_lost, each);
    EXPECT_EQ(connection.directions[1].sent, 1);
  }
}

TEST(Matching, EqualPacketsOfConnectionsWithTheSamePorts) {
  // Two connections take turns with the same numbers; packets are given up in any order.
  Path path;
  std::int64_t now = 0;
  for (int round = 0; round < 3; ++round) {
    for (const std::uint32_t first : {1000U, 2'000'000'000U}) {
      path.add(0, now += ms, {.sequence = first, .flags = flag_syn});
      path.add(0, now += ms, {.sequence = first + 1, .acknowledgement = 1, .payload = 10});
      path.add(0, now += ms, {.sequence = 77, .flags = flag_rst});
    }
  }
  path.add(1, ms, {.sequence = 5, .payload = 2});
  EXPECT_EQ(path.matched().connections().size(), 0);
  path.add(1, 2 * ms, {.sequence = 2'000'000'000, .flags = flag_syn});
  path.add(1, 16 * ms, {.sequence = 2'000'000'000, .flags = flag_syn});
  EXPECT_EQ(path.matched({.complete = true}).connections().size(), 1);
}

TEST(Matching, OfACaptureThatBeginsLaterConnectionsHaveOtherNumbers) {
  Path path;
  for (std::uint32_t c = 0; c < 3; ++c) {
    const std::uint32_t first = 1'000'000'000 * c;
    for (int side = 0; side < 2; ++side) {
      if (side == 1 && c == 0) continue;
      const std::int64_t at = c * second + side * 20 * ms;
      path.add(side, at, {.sequence = first, .flags = flag_syn});
      path.add(side, at + ms, {.sequence = first + 1, .acknowledgement = 1, .payload = 100});
    }
  }
  Matcher& matcher = path.matched();
  ASSERT_EQ(matcher.connections().size(), 2);
  EXPECT_EQ(matcher.connections()[0].numbers, (std::array{1U, 0U}));
  EXPECT_EQ(matcher.connections()[1].numbers, (std::array{2U, 1U}));
}

TEST(Matching, MemoryIsBoundedAndNothingInCommonIsFine) {
  Path path;
  for (std::uint32_t i = 0; i < 600'000; ++i) path.add(0, i, {.sequence = i, .payload = 1});
  path.add(1, 5, {.sequence = 5, .payload = 2});
  Matcher& matcher = path.matched({.complete = true});
  EXPECT_EQ(matcher.connections().size(), 0);
}

// ------------------------------------------------------------------------------ bursts and gaps

LossPattern pattern(const std::string& packets) {
  LossPattern result;
  std::int64_t at = 0;
  for (const char each : packets) result.add(each == 'x', (at++) * ms);
  result.finish();
  return result;
}

TEST(Bursts, ByTheirDefinition) {
  // 20 received, a burst of x.x, 16 received, a single loss, 20 received.
  const LossPattern seen =
      pattern(std::string(20, '.') + "x.x" + std::string(16, '.') + "x" + std::string(20, '.'));
  EXPECT_EQ(seen.bursts().count, 1);
  EXPECT_EQ(seen.bursts().packets, 3);
  EXPECT_EQ(seen.bursts().lost, 2);
  EXPECT_EQ(seen.bursts().time_ns, 2 * ms);
  EXPECT_EQ(seen.gaps().count, 2);
  EXPECT_EQ(seen.gaps().packets, 57);
  EXPECT_EQ(seen.gaps().lost, 1);
  EXPECT_EQ(seen.gaps().time_ns, 57 * ms);
  EXPECT_EQ(seen.runs().at(1), 3);
}

TEST(Bursts, FifteenReceivedDoNotEndOne) {
  EXPECT_EQ(pattern("x" + std::string(15, '.') + "x").bursts().packets, 17);
  EXPECT_EQ(pattern("x" + std::string(16, '.') + "x").bursts().count, 0);
  EXPECT_EQ(pattern("x" + std::string(16, '.') + "x").gaps().lost, 2);
}

TEST(Bursts, AllLostOrNone) {
  EXPECT_EQ(pattern("xxxx").bursts().lost, 4);
  EXPECT_EQ(pattern("xxxx").gaps().count, 0);
  EXPECT_EQ(pattern("xxxx").runs().at(4), 1);
  EXPECT_EQ(pattern("....").gaps().packets, 4);
  EXPECT_EQ(pattern("").gaps().count, 0);
}

/// RFC 3611, appendix A.2, as transitions between packets; its counts by its own names.
TEST(Bursts, AgreeWithTheCountsOfTheRfc) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::string packets(16, '.');
    const std::size_t one_in = 2 + random() % 40;
    const std::size_t length = random() % 400;
    for (std::size_t i = 0; i < length; ++i) packets += random() % one_in == 0 ? 'x' : '.';
    packets += std::string(16, '.');
    std::int64_t received = 0;
    std::int64_t lost_in_row = 0;
    std::int64_t c14 = 0;  // single losses in gaps
    std::int64_t bursts = 0;
    std::int64_t lost_in_bursts = 0;
    const auto end_group = [&] {
      if (lost_in_row == 1) ++c14;
      if (lost_in_row > 1) {
        ++bursts;
        lost_in_bursts += lost_in_row;
      }
      lost_in_row = 0;
    };
    for (const char each : packets) {
      if (each == '.') {
        if (++received == 16) end_group();
      } else {
        received = 0;
        ++lost_in_row;
      }
    }
    const LossPattern seen = pattern(packets);
    EXPECT_EQ(seen.bursts().count, bursts) << packets;
    EXPECT_EQ(seen.bursts().lost, lost_in_bursts) << packets;
    EXPECT_EQ(seen.gaps().lost, c14) << packets;
    EXPECT_EQ(seen.bursts().packets + seen.gaps().packets,
              static_cast<std::int64_t>(packets.size()));
  }
}

}  // namespace
}  // namespace nagi::captures
