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

/// Passes packets to an engine and returns its connections.
class Flows : public testing::Test {
 protected:
  Classification give(const Segment& segment, std::int64_t time_ns) {
    const Bytes bytes = frame(segment);
    Record record;
    record.time_ns = time_ns;
    record.data = bytes.data();
    record.captured = record.length = static_cast<std::uint32_t>(bytes.size());
    record.link_type = 1;
    Packet packet;
    EXPECT_EQ(Decoder().decode(record, packet), Unused::none);
    return engine.add(packet);
  }
  Classification give(const Segment& segment) { return give(segment, now += ms); }
  /// Add data of direction 0.
  Classification data(std::uint32_t sequence, std::uint32_t payload = 100) {
    return give({.sequence = sequence, .acknowledgement = 1, .payload = payload});
  }
  Classification ack(std::uint32_t acknowledgement) {
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
  Direction& forth(std::uint32_t connection = 0) {
    return *engine.connection(connection)->directions[0];
  }
  Direction& back(std::uint32_t connection = 0) {
    return *engine.connection(connection)->directions[1];
  }
  static const Counts& all(const Direction& direction) { return direction.counts; }
  const Distribution& by_sequence(unsigned direction = 0) {
    const auto& samples = engine.connection(0)->directions[direction]->rtt_sequence;
    return samples ? *samples : none;
  }
  const Distribution& by_timestamps(unsigned direction = 0) {
    const auto& samples = engine.connection(0)->directions[direction]->rtt_timestamps;
    return samples ? *samples : none;
  }

  const Distribution none;
  Engine engine{Options{}};
  std::int64_t now = 0;
};

TEST_F(Flows, HandshakeAndScaledWindows) {
  handshake(0xffffffff, 77);
  EXPECT_TRUE(engine.connection(0)->complete_handshake);
  EXPECT_EQ(forth().syn_packets, 1);
  EXPECT_EQ(forth().mss, 1460);
  EXPECT_EQ(back().mss, -1);
  EXPECT_EQ(forth().window_scale, 2);
  EXPECT_EQ(forth().window.max, 4000);
  EXPECT_EQ(forth().window.count, 1);  // not the SYN's
  EXPECT_EQ(give({.sequence = 78, .acknowledgement = 0, .back = true}).window, 16000);
  EXPECT_EQ(by_sequence().count(), 1);  // the SYN's
}

TEST_F(Flows, NumbersWrap) {
  handshake(0xffffff00);
  std::uint32_t sequence = 0xffffff01;
  for (int i = 0; i < 10; ++i) {
    const Classification seen = data(sequence);
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
  EXPECT_FALSE(engine.connection(0)->complete_handshake);
}

TEST_F(Flows, MidStreamAnAcknowledgementMayComeFirst) {
  give({.sequence = 1, .acknowledgement = 5001, .back = true});
  give({.sequence = 1, .acknowledgement = 9001, .back = true});
  // It is direction 0, then.
  EXPECT_EQ(give({.sequence = 10001, .acknowledgement = 1, .payload = 100}).sequence, 0);
  EXPECT_EQ(back().in_flight.max, 1100);
  EXPECT_EQ(all(back()).out_of_order_packets, 0);
}

TEST_F(Flows, RttBySequence) {
  handshake();
  const auto before = by_sequence().count();
  give({.sequence = 1, .acknowledgement = 1, .payload = 100}, 100 * ms);
  give({.sequence = 101, .acknowledgement = 1, .payload = 100}, 110 * ms);
  give({.sequence = 1, .acknowledgement = 201, .back = true}, 150 * ms);
  EXPECT_EQ(by_sequence().count(), before + 1);
  EXPECT_EQ(by_sequence().max(), 40 * ms);
}

TEST_F(Flows, RttBySequenceNotFromRetransmissions) {
  handshake();
  const auto before = by_sequence().count();
  data(1);
  data(101);
  data(1);
  ack(101);
  EXPECT_EQ(by_sequence().count(), before);
  ack(201);  // waited for the retransmission
  EXPECT_EQ(by_sequence().count(), before);
  data(201);
  ack(301);
  EXPECT_EQ(by_sequence().count(), before + 1);
}

TEST_F(Flows, RttByTimestamps) {
  // `number`: of the first byte; of packets back, what they acknowledge.
  const auto stamped = [&](std::int64_t at, bool is_back, std::uint32_t tsval, std::uint32_t tsecr,
                           std::uint32_t number, std::uint32_t payload) {
    give({.sequence = is_back ? 1 : number,
          .acknowledgement = is_back ? number : 1,
          .payload = payload,
          .back = is_back,
          .options = stamps(tsval, tsecr)},
         at * ms);
  };
  stamped(0, false, 0xffffffff, 1, 1, 100);
  stamped(1, false, 0xffffffff, 1, 101, 100);  // the same again
  stamped(2, false, 0, 1, 201, 100);           // wrapped
  stamped(3, false, 1, 1, 301, 0);             // needs no acknowledgement
  stamped(30, true, 69, 0xffffffff, 1, 0);     // acknowledges nothing, as when it waits for data
  stamped(40, true, 70, 0xffffffff, 101, 0);
  stamped(41, true, 71, 0xffffffff, 201, 0);  // echoed before
  stamped(52, true, 72, 0, 301, 0);
  stamped(60, true, 73, 1, 301, 0);
  EXPECT_EQ(by_timestamps().count(), 2);
  EXPECT_EQ(by_timestamps().min(), 40 * ms);
  EXPECT_EQ(by_timestamps().max(), 50 * ms);
  EXPECT_EQ(by_timestamps(1).count(), 0);
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
  EXPECT_EQ(all(forth()).first_time_bytes, 100);  // the byte may be refused
  EXPECT_EQ(all(forth()).data_packets, 1);
  ack(102);
  EXPECT_EQ(all(forth()).first_time_bytes, 101);  // and was not
  EXPECT_EQ(all(forth()).data_packets, 2);
}

TEST_F(Flows, AByteThatAClosedWindowRefusedIsNoRetransmissionLater) {
  handshake();
  data(1);
  give({.sequence = 1, .acknowledgement = 101, .window = 0, .back = true});
  data(101, 1);
  give({.sequence = 1, .acknowledgement = 101, .window = 0, .back = true});
  ack(101);  // the window is open again
  data(101, 100);
  ack(201);
  EXPECT_EQ(all(forth()).retransmitted_packets, 0);
  EXPECT_EQ(all(forth()).first_time_bytes, 200);
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
  const auto before = by_sequence().count();
  ack(152);
  EXPECT_EQ(by_sequence().count(), before + 1);
  EXPECT_EQ(forth().fin_packets, 1);
  give({.sequence = 101, .acknowledgement = 1, .payload = 50, .flags = flag_ack | flag_fin});
  EXPECT_EQ(all(forth()).retransmitted_packets, 1);
  EXPECT_EQ(all(forth()).first_time_bytes, 150);
}

TEST_F(Flows, SamePortsAgainAreAnotherConnection) {
  handshake(1000);
  data(1001);
  give({.sequence = 1000, .flags = flag_syn}, now += 1000 * ms);  // the first SYN once more
  EXPECT_EQ(engine.count(), 1);
  handshake(500'000);
  data(500'001);
  ASSERT_EQ(engine.count(), 2);
  EXPECT_EQ(all(forth(1)).first_time_bytes, 100);
  EXPECT_TRUE(engine.connection(1)->complete_handshake);
  EXPECT_EQ(forth(0).syn_packets, 2);
}

TEST_F(Flows, ASynOvertakenByItsDataOpensNothing) {
  data(1001);
  give({.sequence = 1000, .flags = flag_syn});
  EXPECT_EQ(engine.count(), 1);
}

TEST_F(Flows, WhatIsAcknowledgedTellsWhichOfSeveralSynAcksHolds) {
  // RFC 9293: the valid SYN-ACK is the one whose number the other side acknowledges.
  for (const std::uint32_t number : {500'000'000U, 510'000'000U, 490'000'000U, 3'000'000'000U}) {
    engine.~Engine();
    new (&engine) Engine(Options{});
    give({.sequence = 1000, .flags = flag_syn, .options = {3, 3, 2, 1, 2, 4, 5, 0xb4}});
    for (const std::uint32_t each : {500'000'000U, number, number}) {
      const bool holds = each == number;
      give({.sequence = each,
            .acknowledgement = 1001,
            .flags = flag_syn | flag_ack,
            .back = true,
            .options = holds ? Bytes{3, 3, 4, 1} : Bytes{}});
    }
    give({.sequence = 1001, .acknowledgement = number + 1, .payload = 9});
    EXPECT_EQ(engine.count(), 1);
    const Classification seen =
        give({.sequence = number + 1, .acknowledgement = 1010, .payload = 70, .back = true});
    EXPECT_EQ(seen.sequence, 1);
    EXPECT_EQ(seen.new_bytes, 70);
    EXPECT_EQ(back().window_scale, 4);
    EXPECT_TRUE(engine.connection(0)->complete_handshake);
    give({.sequence = 600'000'000,  // a late one of somebody else's
          .acknowledgement = 1001,
          .flags = flag_syn | flag_ack,
          .back = true});
    give({.sequence = number + 71, .acknowledgement = 1010, .payload = 70, .back = true});
    EXPECT_EQ(all(back()).first_time_bytes, 140);
    EXPECT_EQ(all(back()).retransmitted_packets, 0);
  }
}

TEST_F(Flows, AChallengeAckOfAnotherConnectionTeachesNothing) {
  // RFC 5961: a host whose ports are still open answers a SYN so; a reset closes that connection,
  // and the same SYN opens the new one.
  give({.sequence = 1000, .flags = flag_syn, .options = {3, 3, 2, 1, 2, 4, 5, 0xb4}});
  give({.sequence = 77, .acknowledgement = 3'000'000'000, .back = true});
  give({.sequence = 3'000'000'000, .flags = flag_rst});
  give({.sequence = 1000, .flags = flag_syn, .options = {3, 3, 2, 1, 2, 4, 5, 0xb4}},
       now += 1000 * ms);
  give({.sequence = 900'000'000,
        .acknowledgement = 1001,
        .flags = flag_syn | flag_ack,
        .back = true,
        .options = {3, 3, 4, 1}});
  give({.sequence = 1001, .acknowledgement = 900'000'001, .payload = 9});
  give({.sequence = 900'000'001, .acknowledgement = 1010, .payload = 70, .back = true});
  EXPECT_EQ(engine.count(), 1);
  EXPECT_EQ(forth().mss, 1460);
  EXPECT_EQ(forth().window_scale, 2);
  EXPECT_EQ(all(back()).first_time_bytes, 70);
  EXPECT_EQ(all(forth()).first_time_bytes, 9);
  EXPECT_EQ(all(forth()).retransmitted_packets, 0);
}

TEST_F(Flows, ASynOfAnotherNumberWhereOneDirectionWasCaptured) {
  for (const std::uint32_t number : {4'000'000'000U, 1'000'000'000U}) {
    give({.sequence = number, .acknowledgement = 5, .flags = flag_syn | flag_ack, .back = true});
    give({.sequence = number + 1, .acknowledgement = 5, .payload = 100, .back = true});
  }
  ASSERT_EQ(engine.count(), 2);
  EXPECT_EQ(all(back(0)).first_time_bytes, 100);
  EXPECT_EQ(all(back(1)).first_time_bytes, 100);
}

TEST_F(Flows, PortsUsedAgainAfterAResetInTheOtherDirection) {
  handshake(1000, 2'000'000'000);
  data(1001);
  give({.sequence = 1101, .flags = flag_rst});
  give({.sequence = 7, .flags = flag_syn, .back = true});
  give({.sequence = 900'000'000, .acknowledgement = 8, .flags = flag_syn | flag_ack});
  give({.sequence = 8, .acknowledgement = 900'000'001, .payload = 30, .back = true});
  ASSERT_EQ(engine.count(), 2);
  EXPECT_EQ(all(forth(1)).first_time_bytes, 30);  // direction 0 is that of the SYN
}

TEST_F(Flows, WhatIsClosedLeaves) {
  std::vector<std::uint32_t> left;
  engine.~Engine();
  new (&engine) Engine(Options{}, [&](const Connection& each) { left.push_back(each.number); });
  handshake();
  give({.sequence = 1, .acknowledgement = 1, .flags = flag_fin | flag_ack});
  give({.sequence = 1, .acknowledgement = 2, .flags = flag_fin | flag_ack, .back = true});
  give({.sequence = 2, .acknowledgement = 2});
  give({.sequence = 1, .flags = flag_syn, .port = 1}, now += linger_ns);
  EXPECT_TRUE(left.empty());
  give({.sequence = 1, .flags = flag_syn, .port = 2}, now += ms);
  EXPECT_EQ(left, std::vector<std::uint32_t>{0});
  EXPECT_EQ(give({.sequence = 2, .acknowledgement = 2}).connection, 3);
  engine.finish();
  EXPECT_EQ(left, (std::vector<std::uint32_t>{0, 1, 2, 3}));
}

TEST_F(Flows, DataAfterAResetGoesOn) {
  handshake();
  data(1);
  give({.sequence = 101, .flags = flag_rst});  // a forged one
  data(101);
  EXPECT_EQ(give({.sequence = 201, .acknowledgement = 1, .payload = 100}, now += 2 * linger_ns)
                .connection,
            0);
}

TEST_F(Flows, NoSampleOfDataThatWasNotCaptured) {
  handshake();
  const auto before = by_sequence().count();
  data(1);
  now += 50 * ms;
  ack(301);  // 101 to 301 was not captured
  EXPECT_EQ(by_sequence().count(), before);
  data(301);
  data(501);  // 401 to 501 was not
  ack(501);
  EXPECT_EQ(by_sequence().count(), before);
  ack(601);
  EXPECT_EQ(by_sequence().count(), before + 1);
}

TEST_F(Flows, TimesThatGoBack) {
  give({.sequence = 1, .acknowledgement = 1, .payload = 100}, 50 * ms);
  give({.sequence = 101, .acknowledgement = 1, .payload = 100}, 20 * ms);
  EXPECT_EQ(forth().first_ns, 20 * ms);
  EXPECT_EQ(forth().last_ns, 50 * ms);
  EXPECT_EQ(forth().first_data_ns, 20 * ms);
  EXPECT_EQ(forth().last_data_ns, 50 * ms);
}

TEST_F(Flows, WhereTheCaptureWasMade) {
  const auto made = [&](std::int64_t to_listener, std::int64_t to_caller) {
    engine.~Engine();
    new (&engine) Engine(Options{});
    give({.sequence = 0, .flags = flag_syn});
    give({.sequence = 0, .acknowledgement = 1, .flags = flag_syn | flag_ack, .back = true},
         now += to_listener);
    give({.sequence = 1, .acknowledgement = 1}, now += to_caller);
    return engine.connection(0)->capture_point(0);
  };
  EXPECT_EQ(made(40 * ms, ms / 20), CapturePoint::source);
  EXPECT_EQ(made(ms / 20, 40 * ms), CapturePoint::destination);
  EXPECT_EQ(engine.connection(0)->capture_point(1), CapturePoint::source);
  EXPECT_EQ(made(20 * ms, 30 * ms), CapturePoint::between);
  EXPECT_EQ(made(ms / 50, ms / 50), CapturePoint::unknown);
  EXPECT_EQ(engine.connection(0)->handshake->to_listener(), ms / 50);
}

TEST_F(Flows, PacketsCapturedTwice) {
  handshake();
  const Segment segment{.sequence = 1, .acknowledgement = 1, .payload = 100};
  give(segment, now += ms);
  give(segment, now += ms / 100);
  EXPECT_EQ(forth().captured_twice, 1);
  give(segment, now += 5 * ms);  // a retransmission
  EXPECT_EQ(forth().captured_twice, 1);
}

TEST_F(Flows, ThousandsOfThem) {
  for (int round = 0; round < 3; ++round) {
    for (std::uint16_t port = 1; port <= 5000; ++port) {
      give({.sequence = 1000u + 100u * static_cast<unsigned>(round), .payload = 100, .port = port});
      give({.sequence = 1, .acknowledgement = 1000, .back = true, .port = port});
    }
  }
  ASSERT_EQ(engine.count(), 5000);
  for (std::uint32_t each = 0; each < engine.count(); ++each) {
    EXPECT_EQ(all(forth(each)).first_time_bytes, 300);
    EXPECT_EQ(all(back(each)).packets, 3);
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
  EXPECT_EQ(forth().inside().data_packets, 11);
  EXPECT_EQ(forth().inside().first_time_bytes, 1000);
  EXPECT_EQ(forth().inside().retransmitted_packets, 1);
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
  EXPECT_EQ(all.min(), static_cast<double>(values.front()));
  EXPECT_EQ(all.max(), static_cast<double>(values.back()));
  EXPECT_TRUE(std::isnan(Distribution().quantile(0.5)));
}

}  // namespace
}  // namespace nagi::captures
