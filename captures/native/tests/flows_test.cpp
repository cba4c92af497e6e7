// SPDX-License-Identifier: Apache-2.0
#include "native/flows.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "made.hpp"

namespace nagi::captures {
namespace {

using namespace made;

constexpr std::int64_t ms = 1'000'000;

/// Packets go in, connections come out.
class Flows : public testing::Test {
 protected:
  Seen give(const Segment& segment, std::int64_t time_ns) {
    const Bytes bytes = frame(segment);
    Record record;
    record.time_ns = time_ns;
    record.data = bytes.data();
    record.captured = record.length = static_cast<std::uint32_t>(bytes.size());
    record.link_type = 1;
    Packet packet;
    EXPECT_EQ(decode(record, packet), Unused::none);
    return engine.add(packet);
  }
  Seen give(const Segment& segment) { return give(segment, now += ms); }
  /// Data of direction 0.
  Seen data(std::uint32_t sequence, std::uint32_t payload = 100) {
    return give({.sequence = sequence, .acknowledgement = 1, .payload = payload});
  }
  Seen ack(std::uint32_t acknowledgement) {
    return give({.sequence = 1, .acknowledgement = acknowledgement, .back = true});
  }
  void handshake(std::uint32_t first = 0, std::uint32_t second = 0) {
    give({.sequence = first, .flags = flag_syn, .options = {3, 3, 2, 1, 2, 4, 5, 0xb4}});
    give({.sequence = second,
          .acknowledgement = first + 1,
          .flags = flag_syn | flag_ack,
          .back = true,
          .options = {3, 3, 4, 1}});
    give({.sequence = first + 1, .acknowledgement = second + 1});
  }
  Direction& forth(std::size_t connection = 0) {
    return engine.connections()[connection].directions[0];
  }
  Direction& back(std::size_t connection = 0) {
    return engine.connections()[connection].directions[1];
  }
  static Counts all(const Direction& direction) {
    Counts sum = direction.counts[0];
    const Counts& more = direction.counts[1];
    sum.packets += more.packets;
    sum.payload_bytes += more.payload_bytes;
    sum.data_packets += more.data_packets;
    sum.first_time_bytes += more.first_time_bytes;
    sum.retransmitted_packets += more.retransmitted_packets;
    sum.retransmitted_bytes += more.retransmitted_bytes;
    sum.out_of_order_packets += more.out_of_order_packets;
    return sum;
  }

  Engine engine{Options{}};
  std::int64_t now = 0;
};

TEST_F(Flows, HandshakeAndScaledWindows) {
  handshake(0xffffffff, 77);
  EXPECT_TRUE(engine.connections()[0].complete_handshake);
  EXPECT_EQ(forth().syn_packets, 1);
  EXPECT_EQ(forth().mss, 1460);
  EXPECT_EQ(back().mss, -1);
  EXPECT_EQ(forth().window_scale, 2);
  EXPECT_EQ(forth().window.most, 4000);
  EXPECT_EQ(forth().window.count, 1);  // not the SYN's
  EXPECT_EQ(give({.sequence = 78, .acknowledgement = 0, .back = true}).window, 16000);
  EXPECT_EQ(forth().rtt_sequence.count(), 1);  // the SYN's
}

TEST_F(Flows, NumbersWrap) {
  handshake(0xffffff00);
  std::uint32_t sequence = 0xffffff01;
  for (int i = 0; i < 10; ++i) {
    const Seen seen = data(sequence);
    EXPECT_EQ(seen.sequence, 1 + 100 * i);
    EXPECT_EQ(seen.new_bytes, 100);
    sequence += 100;
  }
  EXPECT_TRUE(data(0xffffff01).retransmission);
  EXPECT_EQ(ack(sequence).acknowledgement, 1001);
  EXPECT_EQ(all(forth()).first_time_bytes, 1000);
  EXPECT_EQ(all(forth()).retransmitted_packets, 1);
}

TEST_F(Flows, ReorderedIsNotRetransmitted) {
  handshake();
  data(1);
  data(201);
  EXPECT_EQ(data(101).new_bytes, 100);
  EXPECT_EQ(all(forth()).out_of_order_packets, 1);
  EXPECT_EQ(all(forth()).retransmitted_packets, 0);
  data(101);
  EXPECT_EQ(all(forth()).retransmitted_packets, 1);
  EXPECT_EQ(all(forth()).retransmitted_bytes, 100);
}

TEST_F(Flows, OverlapsCountWhatIsNew) {
  handshake();
  data(1, 100);
  data(201, 100);
  data(401, 100);
  EXPECT_EQ(data(51, 400).new_bytes, 200);  // over both holes
  EXPECT_EQ(data(451, 100).new_bytes, 50);
  EXPECT_EQ(all(forth()).retransmitted_packets, 2);
  EXPECT_EQ(all(forth()).retransmitted_bytes, 250);
  EXPECT_EQ(all(forth()).first_time_bytes, 550);
}

TEST_F(Flows, FirstTimeBytesAreThoseOfASet) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    engine.~Engine();
    new (&engine) Engine(Options{});
    const bool from_syn = round % 2 == 0;
    if (from_syn) handshake(1'000'000 - 1);
    std::set<std::uint32_t> seen;
    std::uint32_t first = 0;
    for (int i = 0; i < 60; ++i) {
      const auto begin = static_cast<std::uint32_t>(1'000'000 + random() % 120);
      const auto length = static_cast<std::uint32_t>(2 + random() % 30);
      if (i == 0) first = begin;
      std::uint32_t fresh = 0;
      for (std::uint32_t at = begin; at < begin + length; ++at) fresh += seen.insert(at).second;
      EXPECT_EQ(data(begin, length).new_bytes, fresh) << round << " " << i << " " << first;
    }
    EXPECT_EQ(all(forth()).first_time_bytes, static_cast<std::int64_t>(seen.size()));
  }
}

TEST_F(Flows, MidStreamWhatComesBeforeIsNew) {
  data(1001);
  EXPECT_EQ(data(801).new_bytes, 100);
  EXPECT_EQ(data(901).new_bytes, 100);
  EXPECT_EQ(data(801, 300).new_bytes, 0);
  EXPECT_FALSE(engine.connections()[0].complete_handshake);
}

TEST_F(Flows, MidStreamAnAcknowledgementMayComeFirst) {
  give({.sequence = 1, .acknowledgement = 5001, .back = true});
  give({.sequence = 1, .acknowledgement = 9001, .back = true});
  // It is direction 0, then.
  EXPECT_EQ(give({.sequence = 10001, .acknowledgement = 1, .payload = 100}).sequence, 0);
  EXPECT_EQ(back().in_flight.most, 1100);
  EXPECT_EQ(all(back()).out_of_order_packets, 0);
}

TEST_F(Flows, RttBySequence) {
  handshake();
  const auto before = forth().rtt_sequence.count();
  give({.sequence = 1, .acknowledgement = 1, .payload = 100}, 100 * ms);
  give({.sequence = 101, .acknowledgement = 1, .payload = 100}, 110 * ms);
  give({.sequence = 1, .acknowledgement = 201, .back = true}, 150 * ms);
  EXPECT_EQ(forth().rtt_sequence.count(), before + 1);
  EXPECT_EQ(forth().rtt_sequence.most(), 40 * ms);
}

TEST_F(Flows, RttBySequenceNotFromRetransmissions) {
  handshake();
  const auto before = forth().rtt_sequence.count();
  data(1);
  data(101);
  data(1);
  ack(101);
  EXPECT_EQ(forth().rtt_sequence.count(), before);
  ack(201);  // waited for the retransmission
  EXPECT_EQ(forth().rtt_sequence.count(), before);
  data(201);
  ack(301);
  EXPECT_EQ(forth().rtt_sequence.count(), before + 1);
}

TEST_F(Flows, RttByTimestamps) {
  const auto stamped = [&](std::int64_t at, bool is_back, std::uint32_t tsval, std::uint32_t tsecr,
                           std::uint32_t sequence, std::uint32_t payload) {
    give({.sequence = sequence,
          .acknowledgement = 1,
          .payload = payload,
          .back = is_back,
          .options = stamps(tsval, tsecr)},
         at * ms);
  };
  stamped(0, false, 0xffffffff, 5, 1, 100);
  stamped(1, false, 0xffffffff, 5, 101, 100);  // the same again
  stamped(2, false, 0, 5, 201, 100);           // wrapped
  stamped(3, false, 1, 5, 301, 0);             // needs no acknowledgement
  stamped(40, true, 70, 0xffffffff, 1, 0);
  stamped(41, true, 71, 0xffffffff, 1, 0);  // echoed before
  stamped(52, true, 72, 0, 1, 0);
  stamped(60, true, 73, 1, 1, 0);
  EXPECT_EQ(forth().rtt_timestamps.count(), 2);
  EXPECT_EQ(forth().rtt_timestamps.least(), 40 * ms);
  EXPECT_EQ(forth().rtt_timestamps.most(), 50 * ms);
  EXPECT_EQ(back().rtt_timestamps.count(), 0);
  EXPECT_TRUE(forth().timestamps);
}

TEST_F(Flows, DuplicateAcknowledgements) {
  handshake();
  data(1);
  data(101);
  ack(101);
  ack(101);
  ack(101);
  EXPECT_EQ(back().duplicate_acks, 2);
  give({.sequence = 1, .acknowledgement = 101, .window = 999, .back = true});  // window update
  EXPECT_EQ(back().duplicate_acks, 2);
  ack(201);
  ack(201);  // nothing outstanding
  EXPECT_EQ(back().duplicate_acks, 2);
}

TEST_F(Flows, SackBlocks) {
  handshake();
  give({.sequence = 1,
        .acknowledgement = 1,
        .back = true,
        .options = Bytes{1, 1, 5, 26} + Bytes(24)});
  EXPECT_EQ(back().sack_packets, 1);
  EXPECT_EQ(back().sack_blocks, 3);
}

TEST_F(Flows, KeepAlives) {
  handshake();
  data(1);
  ack(101);
  data(100, 0);
  data(100, 1);
  EXPECT_EQ(forth().keep_alives, 2);
  EXPECT_EQ(all(forth()).retransmitted_packets, 0);
  EXPECT_EQ(all(forth()).first_time_bytes, 100);
  data(101, 1);
  data(101, 1);  // not acknowledged: this is a retransmission
  EXPECT_EQ(forth().keep_alives, 2);
  EXPECT_EQ(all(forth()).retransmitted_packets, 1);
}

TEST_F(Flows, ProbesOfAClosedWindow) {
  handshake();
  data(1);
  give({.sequence = 1, .acknowledgement = 101, .window = 0, .back = true});
  EXPECT_EQ(back().zero_window_packets, 1);
  data(100, 0);  // as Linux does
  data(101, 1);  // as others do
  data(101, 1);  // again
  EXPECT_EQ(forth().window_probes, 3);
  EXPECT_EQ(forth().keep_alives, 0);
  EXPECT_EQ(all(forth()).retransmitted_packets, 0);
  EXPECT_EQ(all(forth()).first_time_bytes, 101);
}

TEST_F(Flows, ResetsTeachNothing) {
  handshake();
  data(1);
  give({.sequence = 0xdeadbeef,
        .acknowledgement = 0xdeadbeef,
        .flags = flag_rst | flag_ack,
        .window = 0});
  data(101);
  EXPECT_EQ(forth().rst_packets, 1);
  EXPECT_EQ(all(forth()).first_time_bytes, 200);
  EXPECT_EQ(forth().zero_window_packets, 0);
}

TEST_F(Flows, FinTakesANumber) {
  handshake();
  data(1);
  give({.sequence = 101, .acknowledgement = 1, .payload = 50, .flags = flag_ack | flag_fin});
  const auto before = forth().rtt_sequence.count();
  ack(152);
  EXPECT_EQ(forth().rtt_sequence.count(), before + 1);
  EXPECT_EQ(forth().fin_packets, 1);
  give({.sequence = 101, .acknowledgement = 1, .payload = 50, .flags = flag_ack | flag_fin});
  EXPECT_EQ(all(forth()).retransmitted_packets, 1);
  EXPECT_EQ(all(forth()).first_time_bytes, 150);
}

TEST_F(Flows, SamePortsAgainAreAnotherConnection) {
  handshake(1000);
  data(1001);
  give({.sequence = 1000, .flags = flag_syn});  // the first SYN once more
  EXPECT_EQ(engine.connections().size(), 1);
  handshake(500'000);
  data(500'001);
  ASSERT_EQ(engine.connections().size(), 2);
  EXPECT_EQ(all(forth(1)).first_time_bytes, 100);
  EXPECT_TRUE(engine.connections()[1].complete_handshake);
  EXPECT_EQ(forth(0).syn_packets, 2);
}

TEST_F(Flows, ASynOvertakenByItsDataOpensNothing) {
  data(1001);
  give({.sequence = 1000, .flags = flag_syn});
  EXPECT_EQ(engine.connections().size(), 1);
}

TEST_F(Flows, ThousandsOfThem) {
  for (int round = 0; round < 3; ++round) {
    for (std::uint16_t port = 1; port <= 5000; ++port) {
      give({.sequence = 1000u + 100u * static_cast<unsigned>(round), .payload = 100, .port = port});
      give({.sequence = 1, .acknowledgement = 1000, .back = true, .port = port});
    }
  }
  ASSERT_EQ(engine.connections().size(), 5000);
  for (const Connection& connection : engine.connections()) {
    EXPECT_EQ(all(connection.directions[0]).first_time_bytes, 300);
    EXPECT_EQ(all(connection.directions[1]).packets, 3);
  }
}

TEST_F(Flows, MemoryIsBoundedWhereNothingIsAcknowledged) {
  for (std::uint32_t i = 0; i < 200'000; ++i) data(1 + 200 * i);  // a hole after each
  EXPECT_EQ(all(forth()).first_time_bytes, 20'000'000);
  EXPECT_TRUE(data(101, 100).retransmission);  // a hole that had to be forgotten
  EXPECT_FALSE(data(1 + 200 * 199'998 + 100, 100).retransmission);
}

TEST_F(Flows, WhatIsMeasuredAndSeries) {
  engine.~Engine();
  new (&engine) Engine(Options{.start_ns = 10 * ms, .end_ns = 20 * ms, .interval_ns = 5 * ms});
  for (int i = 0; i < 30; ++i) {
    give({.sequence = 1 + 100u * static_cast<unsigned>(i), .acknowledgement = 1, .payload = 100},
         i * ms);
  }
  give({.sequence = 1, .payload = 100}, 12 * ms);  // back in time
  EXPECT_EQ(forth().counts[1].data_packets, 11);
  EXPECT_EQ(forth().counts[1].first_time_bytes, 1000);
  EXPECT_EQ(forth().counts[1].retransmitted_packets, 1);
  EXPECT_EQ(engine.origin_ns(), 10 * ms);
  ASSERT_EQ(forth().series.size(), 6);
  EXPECT_EQ(forth().series[0].index, -2);
  EXPECT_EQ(forth().series[0].payload_bytes, 500);
  EXPECT_EQ(forth().series[2].payload_bytes, 600);
  EXPECT_EQ(forth().series[2].retransmitted_packets, 1);
}

TEST(Quantiles, AreWithinOnePercent) {
  Distribution all;
  std::mt19937_64 random(7);
  std::vector<std::int64_t> values;
  for (int i = 0; i < 20'000; ++i) {
    values.push_back(static_cast<std::int64_t>(random() >> (24 + i % 40)));
    all.add(values.back());
  }
  std::sort(values.begin(), values.end());
  for (const double share : {0.01, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999}) {
    const auto exact =
        static_cast<double>(values[static_cast<std::size_t>(std::ceil(share * 20'000)) - 1]);
    EXPECT_NEAR(all.quantile(share), exact, exact * 0.008) << share;
  }
  EXPECT_EQ(all.least(), static_cast<double>(values.front()));
  EXPECT_EQ(all.most(), static_cast<double>(values.back()));
  EXPECT_TRUE(std::isnan(Distribution().quantile(0.5)));
}

}  // namespace
}  // namespace nagi::captures
