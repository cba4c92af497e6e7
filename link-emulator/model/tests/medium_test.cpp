// SPDX-License-Identifier: Apache-2.0
//
// The shared medium against schedules worked out by hand. Times in us of 802.11b with the long
// preamble, 11 Mb/s and control frames at 1 Mb/s:
//   slot 20, SIFS 10, DIFS 50, preamble 192, RTS 352, CTS 304, ACK 304, EIFS 10 + 304 + 50 = 364,
//   DATA of 1,000 bytes of IP 192 + ceil(1,036 x 8 / 11) = 946,
//   an answer is missed 10 + 20 + 192 = 222 after the end of what asks for it.
#include "model/medium/medium.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace nagi::model {
namespace {

using std::chrono::microseconds;
using testing::ElementsAre;

constexpr std::uint64_t seed = 7;
constexpr std::uint32_t medium_id = 3;
constexpr Bytes ip_packet{1000};

MediumConfig config_of(std::vector<std::vector<bool>> decodes) {
  MediumConfig config;
  config.phy.data_rate = {11'000'000};
  config.phy.basic_rate = {1'000'000};
  config.stations.resize(decodes.size());
  const std::vector<std::vector<bool>> none(decodes.size(),
                                            std::vector<bool>(decodes.size(), false));
  config.reach = MatrixReach{std::move(decodes), none, none};
  return config;
}

/// Each hears each.
MediumConfig all_hear(std::size_t stations) {
  return config_of(std::vector(stations, std::vector<bool>(stations, true)));
}

/// Each hears its neighbours in a row.
MediumConfig chain(std::size_t stations) {
  std::vector decodes(stations, std::vector<bool>(stations, false));
  for (std::size_t i = 0; i + 1 < stations; ++i) decodes[i][i + 1] = decodes[i + 1][i] = true;
  return config_of(decodes);
}

MediumConfig with_rts(MediumConfig config) {
  config.rts_threshold = Bytes{0};
  return config;
}

std::int64_t in_us(Instant at) {
  return std::chrono::duration_cast<microseconds>(at.time_since_epoch()).count();
}

const char* name_of(FrameKind kind) {
  constexpr std::array names = {"", "RTS", "CTS", "DATA", "ACK"};
  return names.at(static_cast<std::size_t>(kind));
}

const char* name_of(FrameOutcome outcome) {
  constexpr std::array names = {"received",      "channel error", "collided",    "hidden terminal",
                                "receiver busy", "out of reach",  "not answered"};
  return names.at(static_cast<std::size_t>(outcome));
}

/// "DATA 0>1 100-1046 received"
std::string shown(const AirFrame& frame) {
  const std::string to = frame.to == everybody ? "*" : std::to_string(frame.to);
  return std::string(name_of(frame.kind)) + " " + std::to_string(frame.from) + ">" + to + " " +
         std::to_string(in_us(frame.start)) + "-" + std::to_string(in_us(frame.end)) + " " +
         name_of(frame.outcome);
}

class Air {
 public:
  explicit Air(const MediumConfig& config) : medium(config, seed, medium_id), config_(config) {}

  void offer(StationIndex from, StationIndex to, std::int64_t at_us, Bytes size = ip_packet) {
    Packet packet;
    packet.size = size;
    packet.tag = tags_++;
    packet.next_hop = to;
    medium.offer(from, packet, Instant{microseconds{at_us}}, events);
  }
  void until(std::int64_t us) { medium.advance(Instant{microseconds{us}}, events); }
  [[nodiscard]] std::vector<std::string> frames() const {
    std::vector<std::string> all;
    for (const AirFrame& frame : events.frames) all.push_back(shown(frame));
    return all;
  }
  /// "0 to 1 at 1046"
  [[nodiscard]] std::vector<std::string> deliveries() const {
    std::vector<std::string> all;
    for (const MediumEvents::Delivery& each : events.deliveries) {
      all.push_back(std::to_string(each.packet.tag) + " to " + std::to_string(each.to) + " at " +
                    std::to_string(in_us(each.at)));
    }
    return all;
  }
  /// The backoff that a station draws as number `draw`, in us, with that contention window.
  [[nodiscard]] static std::int64_t backoff_us(StationIndex station, std::uint64_t draw,
                                               unsigned window) {
    const auto bits = static_cast<unsigned>(std::bit_width(window));
    return static_cast<std::int64_t>(
               Stream(seed, medium_id, station, Purpose::backoff).draw(draw) >> (64 - bits)) *
           20;
  }

  MediumEvents events;
  Medium medium;

 private:
  MediumConfig config_;
  std::uint64_t tags_ = 0;
};

TEST(Medium, APacketThatFindsTheAirIdleForDifsIsSentAtOnce) {
  Air run(all_hear(2));
  run.offer(0, 1, 100);
  run.until(5000);
  EXPECT_THAT(run.frames(),
              ElementsAre("DATA 0>1 100-1046 received", "ACK 1>0 1056-1360 received"));
  EXPECT_THAT(run.deliveries(), ElementsAre("0 to 1 at 1046"));
  ASSERT_EQ(run.events.departures.size(), 1U);
  EXPECT_EQ(run.events.departures[0].departure.fate, Fate::delivered);
  EXPECT_EQ(in_us(run.events.departures[0].departure.at), 1046);
}

TEST(Medium, OneThatComesBeforeDifsIsOverWaitsForItsEnd) {
  Air run(all_hear(2));
  run.offer(0, 1, 20);
  run.until(5000);
  EXPECT_EQ(run.frames().front(), "DATA 0>1 50-996 received");
}

TEST(Medium, RtsAndCtsPrecedeLongPackets) {
  MediumConfig config = all_hear(2);
  config.rts_threshold = Bytes{536};
  Air run(config);
  run.offer(0, 1, 100);
  run.until(2500);
  EXPECT_THAT(run.frames(),
              ElementsAre("RTS 0>1 100-452 received", "CTS 1>0 462-766 received",
                          "DATA 0>1 776-1722 received", "ACK 1>0 1732-2036 received"));
  run.offer(0, 1, 100'000, Bytes{500});  // 536 with its header: not longer than the threshold
  run.until(110'000);
  EXPECT_EQ(run.frames()[4], "DATA 0>1 100000-100582 received");
}

TEST(Medium, AStationBacksOffAfterItsOwnFrame) {
  Air run(all_hear(2));
  run.offer(0, 1, 100);
  run.offer(0, 1, 100);
  run.until(100'000);
  const auto start = 1360 + 50 + Air::backoff_us(0, 0, 31);
  EXPECT_EQ(run.events.frames[2].start, Instant{microseconds{start}});
}

TEST(Medium, AFrameIsNotHeldBackByABackoffThatIsOver) {
  Air run(all_hear(2));
  run.offer(0, 1, 100);
  run.offer(0, 1, 50'000);
  run.until(100'000);
  EXPECT_EQ(run.frames()[2], "DATA 0>1 50000-50946 received");
}

TEST(Medium, WhatComesWhileTheAirIsBusyBacksOff) {
  Air run(all_hear(3));
  run.offer(0, 1, 100);
  run.offer(2, 1, 500);
  run.until(1500);  // until the ACK's end at 1360 nothing else
  EXPECT_EQ(run.events.frames.size(), 2U);
  run.until(100'000);
  EXPECT_EQ(in_us(run.events.frames[2].start), 1360 + 50 + Air::backoff_us(2, 0, 31));
}

TEST(Medium, SlotsThatWerePassedAreNotCountedAgain) {
  Air run(all_hear(3));
  run.offer(0, 1, 100);
  run.offer(0, 1, 100);
  run.offer(2, 1, 500);
  run.until(1'000'000);
  const auto zero = Air::backoff_us(0, 0, 31);
  const auto two = Air::backoff_us(2, 0, 31);
  ASSERT_NE(zero, two);
  const auto first = 1360 + 50 + std::min(zero, two);
  EXPECT_EQ(in_us(run.events.frames[2].start), first);
  // The other goes on with what is left, DIFS after the exchange of 1260.
  EXPECT_EQ(in_us(run.events.frames[4].start),
            first + 1260 + 50 + std::max(zero, two) - std::min(zero, two));
}

TEST(Medium, TwoThatBeginAtOnceCollideAndBothBackOff) {
  Air run(all_hear(3));
  run.offer(0, 2, 100);
  run.offer(1, 2, 100);
  run.until(1100);
  EXPECT_THAT(run.frames(),
              ElementsAre("DATA 0>2 100-1046 collided", "DATA 1>2 100-1046 collided"));
  run.until(1'000'000);
  // Both miss the ACK at 1046 + 222; the air has been idle for longer than DIFS then.
  const auto zero = Air::backoff_us(0, 0, 63);
  const auto one = Air::backoff_us(1, 0, 63);
  ASSERT_NE(zero, one);
  EXPECT_EQ(in_us(run.events.frames[2].start), 1268 + std::min(zero, one));
}

TEST(Medium, AfterACollisionOthersWaitForEifs) {
  Air run(all_hear(4));
  run.offer(0, 2, 100);
  run.offer(1, 2, 100, Bytes{900});
  run.offer(3, 2, 500);  // has heard a frame that it could not receive
  run.until(1'000'000);
  const auto three = Air::backoff_us(3, 0, 31);
  const auto zero = Air::backoff_us(0, 0, 63);
  const auto one = Air::backoff_us(1, 0, 63);
  const auto first = std::min({1046 + 364 + three, 1268 + zero, 1268 + one});
  EXPECT_EQ(in_us(run.events.frames[2].start), first);
  // Station 1 missed its ACK while station 0 was sending; from 1046 on it counts after DIFS, and
  // EIFS does not hold for it, as it received nothing.
}

TEST(Medium, EifsEndsWithTheNextFrameThatIsReceived) {
  Air run(all_hear(4));
  run.offer(0, 2, 100);
  run.offer(1, 2, 100);
  run.until(200'000);  // both got through, and station 3 has received what followed
  run.offer(0, 2, 300'000);
  run.offer(3, 2, 300'500);
  run.until(400'000);
  const AirFrame& last = run.events.frames[run.events.frames.size() - 2];
  EXPECT_EQ(last.from, 3U);
  EXPECT_EQ(in_us(last.start), 300'000 + 1260 + 50 + Air::backoff_us(3, 0, 31));
}

TEST(Medium, HiddenTerminalsCollideAtTheStationBetween) {
  Air run(chain(3));
  run.offer(0, 1, 100);
  run.offer(2, 1, 600);  // hears nothing of station 0
  run.until(1600);
  EXPECT_THAT(run.frames(), ElementsAre("DATA 0>1 100-1046 hidden terminal",
                                        "DATA 2>1 600-1546 hidden terminal"));
}

TEST(Medium, ACtsKeepsAHiddenTerminalSilent) {
  Air run(with_rts(chain(3)));
  run.offer(0, 1, 100);
  run.offer(2, 1, 600);  // while it hears the CTS
  run.until(2036);
  EXPECT_THAT(run.frames(),
              ElementsAre("RTS 0>1 100-452 received", "CTS 1>0 462-766 received",
                          "DATA 0>1 776-1722 received", "ACK 1>0 1732-2036 received"));
  run.until(1'000'000);
  // The CTS reserves until 2036; station 2 hears the ACK, too.
  EXPECT_EQ(in_us(run.events.frames[4].start), 2036 + 50 + Air::backoff_us(2, 0, 31));
}

TEST(Medium, AnExposedTerminalWaitsForWhatWouldNotDisturbIt) {
  Air run(chain(4));
  run.offer(1, 0, 100);
  run.offer(2, 3, 500);  // station 3 does not hear station 1, but station 2 does
  run.until(1'000'000);
  // DATA ends at 1046 and reserves the air for the ACK, which station 2 does not hear.
  EXPECT_EQ(in_us(run.events.frames[2].start), 1360 + 50 + Air::backoff_us(2, 0, 31));
}

TEST(Medium, AnRtsIsNotAnsweredWhereTheAirIsReserved) {
  Air run(with_rts(chain(4)));
  run.offer(0, 1, 100);   // the CTS of station 1 reserves the air at station 2 until 2036
  run.offer(3, 2, 1000);  // station 3 hears nothing of it
  run.until(1360);
  EXPECT_THAT(run.frames(), ElementsAre("RTS 0>1 100-452 received", "CTS 1>0 462-766 received",
                                        "RTS 3>2 1000-1352 not answered"));
}

TEST(Medium, AReservationThatNothingFollowsMayBeTakenBack) {
  // Station 2 hears the RTS of station 0, which is for nobody.
  MediumConfig config = with_rts(all_hear(3));
  Air run(config);
  run.offer(0, nobody, 100, Bytes{1500});
  run.offer(2, 1, 300, Bytes{1500});
  run.until(1'000'000);
  // Taken back 2 SIFS + CTS + preamble + 2 slots after the RTS: 452 + 556 = 1008. Then DIFS. By
  // then station 0 has missed its CTS, at 452 + 222, and counts down.
  const auto two = 1008 + 50 + Air::backoff_us(2, 0, 31);
  const auto zero = 452 + 222 + Air::backoff_us(0, 0, 63);
  EXPECT_EQ(in_us(run.events.frames[1].start), std::min(two, zero));
}

TEST(Medium, WithoutTakingBackAReservationStands) {
  MediumConfig config = with_rts(all_hear(3));
  config.resets_nav = false;
  config.short_retry_limit = 1;
  Air run(config);
  run.offer(0, nobody, 100);
  run.offer(2, 1, 300);
  run.until(1'000'000);
  // The RTS reserves 3 SIFS + CTS + DATA + ACK = 1584 from 452 on.
  EXPECT_EQ(in_us(run.events.frames[1].start), 2036 + 50 + Air::backoff_us(2, 0, 31));
}

TEST(Medium, APacketForNobodyIsGivenUp) {
  Air run(with_rts(all_hear(2)));
  run.offer(0, nobody, 100);
  run.until(10'000'000);
  EXPECT_EQ(run.events.frames.size(), 7U);
  EXPECT_EQ(run.events.frames.back().attempt, 7U);
  ASSERT_EQ(run.events.departures.size(), 1U);
  EXPECT_EQ(run.events.departures[0].departure.fate, Fate::retry_limit);
  // Seven RTS of 352, each missed after 222; the contention window doubles up to 1023.
  std::int64_t end = 100;
  unsigned window = 31;
  for (unsigned attempt = 0; attempt < 7; ++attempt) {
    end += 352 + 222;
    window = std::min(2 * window + 1, 1023U);
    if (attempt < 6) end += Air::backoff_us(0, attempt, window);
  }
  EXPECT_EQ(in_us(run.events.departures[0].departure.at), end);
  EXPECT_EQ(run.medium.counters(0).given_up, 1U);
}

TEST(Medium, TheLongLimitHoldsForPacketsWithRts) {
  MediumConfig config = with_rts(all_hear(2));
  // ACKs are lost, and CTS are not: losses by the number of the frame, of station 1 at station 0.
  TraceLoss losses;
  losses.lost = {1, 3, 5, 7};
  losses.length = 8;
  config.loss = losses;
  Air run(config);
  run.offer(0, 1, 100);
  run.until(10'000'000);
  // The same trace takes DATA and RTS of station 0 in the other direction: RTS (0), DATA (1: lost)
  // ... so no ACK is ever sent.
  ASSERT_EQ(run.events.departures.size(), 1U);
  EXPECT_EQ(run.events.departures[0].departure.fate, Fate::retry_limit);
  EXPECT_EQ(run.medium.counters(0).frames[static_cast<std::size_t>(FrameKind::data)], 4U);
}

TEST(Medium, APacketWhoseAckIsNotHeardIsDeliveredOnce) {
  std::vector<std::vector<bool>> decodes = {{false, true}, {false, false}};  // 1 is not heard
  Air run(config_of(decodes));
  run.offer(0, 1, 100);
  run.until(10'000'000);
  EXPECT_THAT(run.deliveries(), ElementsAre("0 to 1 at 1046"));
  ASSERT_EQ(run.events.departures.size(), 1U);
  EXPECT_EQ(run.events.departures[0].departure.fate, Fate::delivered);
  EXPECT_EQ(in_us(run.events.departures[0].departure.at), 1046);
  EXPECT_EQ(run.medium.counters(1).frames[static_cast<std::size_t>(FrameKind::ack)], 7U);
}

TEST(Medium, BroadcastsGoAtTheBasicRateToAllThatHear) {
  Air run(with_rts(chain(3)));
  run.offer(1, everybody, 100, Bytes{100});
  run.until(100'000);
  EXPECT_THAT(run.frames(), ElementsAre("DATA 1>* 100-1380 received"));  // 192 + 136 x 8
  EXPECT_THAT(run.deliveries(), ElementsAre("0 to 0 at 1380", "0 to 2 at 1380"));
}

TEST(Medium, TheShortPreambleHalvesWhatPrecedesFrames) {
  MediumConfig config = all_hear(2);
  config.phy.short_preamble = true;
  config.phy.basic_rate = {2'000'000};
  Air run(config);
  run.offer(0, 1, 100);
  run.until(5000);
  EXPECT_THAT(run.frames(), ElementsAre("DATA 0>1 100-950 received", "ACK 1>0 960-1112 received"));
}

TEST(Medium, OfdmFramesAreWholeSymbols) {
  MediumConfig config = all_hear(2);
  config.phy = {&phy_tables[0], false, {54'000'000}, {6'000'000}};
  ASSERT_EQ(config.phy.table->name, "802.11a");
  Air run(config);
  run.offer(0, 1, 100);
  run.until(5000);
  // 22 + 1,036 x 8 bits in symbols of 216: 39; of an ACK 134 bits in symbols of 24: 6.
  EXPECT_THAT(run.frames(), ElementsAre("DATA 0>1 100-276 received", "ACK 1>0 292-336 received"));
}

TEST(Medium, AStrongerFrameSurvivesAWeakerOneThatBeginsLater) {
  MediumConfig config;
  config.phy.data_rate = {11'000'000};
  config.phy.basic_rate = {1'000'000};
  config.stations = {{{0, 0}, {}}, {{200, 0}, {}}, {{600, 0}, {}}, {{800, 0}, {}}};
  RangesReach ranges;
  ranges.capture_db = 10;
  config.reach = ranges;
  Air run(config);
  run.offer(0, 1, 100);
  run.offer(2, 3, 500);  // at station 1 by (400 / 200)^4 = 12 dB weaker
  run.until(1200);
  EXPECT_EQ(run.frames()[0], "DATA 0>1 100-1046 received");

  config.reach = RangesReach{};  // without capture
  Air without(config);
  without.offer(0, 1, 100);
  without.offer(2, 3, 500);
  without.until(1200);
  EXPECT_EQ(without.frames()[0], "DATA 0>1 100-1046 hidden terminal");

  config.reach = ranges;
  Air later(config);
  later.offer(2, 3, 100);
  later.offer(0, 1, 500);  // what was there first cannot be told from it
  later.until(1600);
  EXPECT_EQ(later.frames()[2], "DATA 0>1 500-1446 hidden terminal");
}

TEST(Medium, SinrCountsAllThatDisturbs) {
  MediumConfig config;
  config.phy.data_rate = {11'000'000};
  config.phy.basic_rate = {1'000'000};
  // 16 dBm, 40 dB at 1 m, exponent 3: at 10 m -54 dBm, at 100 m -84, at 80 m -81.1.
  config.reach = SinrReach{16, 3, 40, -94, -85, -85, 9, 4};
  config.stations = {{{0, 0}, {}}, {{100, 0}, {}}, {{0, 1000}, {}}};
  Air alone(config);
  alone.offer(0, 1, 100);
  alone.until(1100);
  EXPECT_EQ(alone.frames()[0], "DATA 0>1 100-1046 received");  // 10 dB over the noise
  // A third at 300 m of the receiver: -98.3 dBm, which with the noise makes -92.6: 8.6 dB.
  config.stations[2].position = {400, 0};
  Air run(config);
  run.offer(0, 1, 100);
  run.offer(2, nobody, 500);
  run.until(1100);
  EXPECT_EQ(run.frames()[0], "DATA 0>1 100-1046 hidden terminal");
}

// When a station sends that hears a frame from 100 us on, at an SINR of -84 dBm over `noise_dbm`,
// and has a packet itself from 200 us on.
std::string sent_after_a_frame(double noise_dbm) {
  MediumConfig config;
  config.phy.data_rate = {11'000'000};
  config.phy.basic_rate = {1'000'000};
  config.short_retry_limit = 1;
  config.reach = SinrReach{16, 3, 40, noise_dbm, -92, -92, 9, 4};
  config.stations = {{{0, 0}, {}}, {{100, 0}, {}}};
  Air run(config);
  run.offer(0, nobody, 100);
  run.offer(1, nobody, 200);
  run.until(40'000);
  return run.frames()[1];
}

TEST(Medium, AFrameWhosePreambleIsFoundButWhichIsLostCostsEifs) {
  // It draws the same backoff. A frame that is received says that its ACK will take SIFS (10 us)
  // and 192 + 112 us at 1 Mb/s. After an error a station waits as long (EIFS - DIFS).
  const auto begin = [](const std::string& frame) {  // "DATA 1>N 1046-..."
    return std::stoi(frame.substr(frame.find(' ', 5)));
  };
  const int not_found = begin(sent_after_a_frame(-87));        // SINR 3 dB
  EXPECT_EQ(begin(sent_after_a_frame(-90)), not_found + 314);  // 6 dB: a preamble, but no frame
  EXPECT_EQ(begin(sent_after_a_frame(-94)), not_found + 314);  // 10 dB: received
}

TEST(Medium, StationsMoveOutOfReach) {
  MediumConfig config;
  config.phy.data_rate = {11'000'000};
  config.phy.basic_rate = {1'000'000};
  config.reach = RangesReach{};
  config.stations = {{{0, 0}, {}}, {{200, 0}, {{microseconds{2000}, {2000, 0}}}}};
  Air run(config);
  run.offer(0, 1, 100);
  run.offer(0, 1, 3000);
  run.until(1'000'000);
  EXPECT_EQ(run.frames()[0], "DATA 0>1 100-1046 received");
  EXPECT_EQ(run.frames()[2].substr(run.frames()[2].find("-") + 5), " out of reach");
  EXPECT_EQ(run.medium.counters(0).given_up, 1U);
}

TEST(Medium, AFullQueueDropsWhatComes) {
  MediumConfig config = all_hear(2);
  config.queue = DropTail{Packets{2}};
  Air run(config);
  for (int i = 0; i < 5; ++i) run.offer(0, 1, 100);
  EXPECT_EQ(run.medium.counters(0).queue_overflows, 2U);  // one is on the air, two wait
  EXPECT_EQ(run.medium.held(0), 3U);
  run.until(1'000'000);
  EXPECT_EQ(run.medium.counters(0).delivered, 3U);
  EXPECT_EQ(run.medium.held(0), 0U);
}

TEST(Medium, EifsAfterSignalsHoldsForWhatIsOnlySensed) {
  MediumConfig config;
  config.phy.data_rate = {11'000'000};
  config.phy.basic_rate = {1'000'000};
  config.reach = RangesReach{};
  config.stations = {{{0, 0}, {}}, {{-200, 0}, {}}, {{500, 0}, {}}, {{700, 0}, {}}};
  for (const EifsAfter after : {EifsAfter::frames, EifsAfter::signals}) {
    config.eifs_after = after;
    Air run(config);
    run.offer(0, 1, 100);
    run.offer(2, 3, 500);  // senses station 0, and not the ACK from 700 m away
    run.until(1'000'000);
    const auto space = after == EifsAfter::frames ? 50 : 364;
    EXPECT_EQ(in_us(run.events.frames[run.frames()[1].starts_with("ACK") ? 2 : 1].start),
              1046 + space + Air::backoff_us(2, 0, 31));
  }
}

TEST(Medium, WhenItIsBroughtOnDoesNotMatter) {
  // Random traffic of six stations in a row, with hidden terminals: brought on by steps of 37 us,
  // or by each arrival alone.
  const auto run_by = [](std::int64_t step) {
    MediumConfig config = with_rts(chain(6));
    config.loss = BernoulliLoss{0.05};
    Air run(config);
    const Stream draws(seed, 99, 0U, Purpose::jitter);
    std::int64_t at = 0;
    std::int64_t brought = 0;
    for (std::uint64_t i = 0; i < 3000; ++i) {
      at += static_cast<std::int64_t>(draws.draw(3 * i) % 2500);
      const auto from = static_cast<StationIndex>(draws.draw(3 * i + 1) % 6);
      const bool up = from == 0 || (from != 5 && draws.draw(3 * i + 2) % 2 == 1);
      const StationIndex to = up ? from + 1 : from - 1;
      while (step != 0 && brought + step < at) run.until(brought += step);
      run.offer(from, to, at, Bytes{40 + draws.draw(3 * i + 2) % 1400});
    }
    run.until(at + 10'000'000);
    std::uint64_t left = 0;
    for (StationIndex station = 0; station < 6; ++station) {
      const StationCounters& count = run.medium.counters(station);
      EXPECT_EQ(count.offered, count.delivered + count.queue_overflows + count.given_up);
      left += run.medium.held(station);
    }
    EXPECT_EQ(left, 0U);
    return run.frames();
  };
  const auto once = run_by(0);
  EXPECT_GT(once.size(), 10'000U);
  EXPECT_EQ(once, run_by(37));
}

TEST(Medium, TheOrderOfArrivalsAtOneInstantDoesNotMatter) {
  const auto run_in = [](std::vector<StationIndex> order) {
    Air run(all_hear(4));
    for (const StationIndex from : order) run.offer(from, 3, 100);
    run.until(1'000'000);
    return run.frames();
  };
  EXPECT_EQ(run_in({0, 1, 2}), run_in({2, 0, 1}));
}

TEST(Medium, NoPacketIsDeliveredBeforeNextDelivery) {
  Air run(with_rts(chain(4)));
  for (int i = 0; i < 20; ++i) {
    run.offer(0, 1, 100);
    run.offer(3, 2, 100);
  }
  while (const auto next = run.medium.next_delivery()) {
    run.medium.advance(*next - Duration{1}, run.events);
    const std::size_t before = run.events.deliveries.size();
    EXPECT_TRUE(before == 0 || run.events.deliveries.back().at <= *next);
    run.medium.advance(*next, run.events);
    for (std::size_t i = before; i < run.events.deliveries.size(); ++i) {
      EXPECT_EQ(run.events.deliveries[i].at, *next);
    }
  }
  EXPECT_EQ(run.events.deliveries.size(),
            40U - run.medium.counters(0).given_up - run.medium.counters(3).given_up);
}

}  // namespace
}  // namespace nagi::model
