// SPDX-License-Identifier: Apache-2.0
//
// Rate adaptation: schedules computed by hand, what schemes choose over channels on which the best
// mode is known, and that a replay of recorded outcomes chooses the same.
#include <gtest/gtest.h>

#include <functional>

#include "model/direction.hpp"
#include "model/direction_json.hpp"

namespace nagi::model {
namespace {

using namespace std::chrono_literals;

// With 100 bytes of overhead, 1,000 bytes take 8.8 ms, 1.1 ms and 0.55 ms.
const std::vector<Mode> modes = {{Bitrate{1'000'000}, Bytes{100}},
                                 {Bitrate{8'000'000}, Bytes{100}},
                                 {Bitrate{16'000'000}, Bytes{100}}};

DirectionConfig adapting(AdaptationScheme scheme) {
  DirectionConfig config;
  config.rate = modes.back().rate;
  config.delay = 20ms;
  config.loss = RadioLoss{};
  config.arq = ArqConfig{3, 1ms};
  config.rate_adaptation = RateAdaptationConfig{std::move(scheme), modes, {}};
  return config;
}

Direction make(const DirectionConfig& config) { return {config, 1, 0, DirectionName::forward}; }

/// What a receiver that needs so much SNR in each mode makes of a channel whose SNR is a function
/// of the number of the transmission.
struct Channel {
  std::vector<std::int16_t> needed = {400, 1000, 1800};
  std::function<std::int16_t(std::uint64_t)> snr;

  void report(Direction& link, const Transmission& sent) const {
    const std::int16_t measured = snr(sent.number);
    link.report(measured < needed[sent.mode], measured);
  }
};

/// Sends packets one after the other; returns their transmissions.
std::vector<Transmission> send(Direction& link, std::size_t packets, const Channel& channel) {
  std::vector<Departure> departures;
  std::vector<Transmission> all;
  const auto settle = [&] {
    for (const Transmission& sent : link.started()) {
      channel.report(link, sent);
      all.push_back(sent);
    }
    link.started().clear();
    link.resolved().clear();
  };
  for (std::size_t i = 0; i < packets; ++i) {
    link.offer({.size = Bytes{1000}, .tag = i}, link.now(), departures);
    settle();
  }
  while (const auto next = link.next_event()) {
    link.advance(*next, departures);
    settle();
  }
  return all;
}

TEST(RateAdaptation, TakesTheModeThatTheLastKnownSnrAllows) {
  Direction link = make(adapting(SnrTable{{4.0, 10.0, 18.0}}));
  // Feedback comes 1 ms after the end: too late for the next transmission, in time for the one
  // after.
  const auto sent = send(link, 6, {.snr = [](std::uint64_t number) -> std::int16_t {
                           return number == 2 ? no_snr : number == 3 ? 1000 : 2000;
                         }});
  std::vector<int> chosen;
  for (const Transmission& each : sent) chosen.push_back(each.mode);
  // 0 and 1: nothing is known. 2 to 4: 0 and 1 had 20 dB. 5: 2 was not detected. 6 and 7 repeat 2
  // and 3, after 4, which had 20 dB.
  EXPECT_EQ(chosen, (std::vector<int>{0, 0, 2, 2, 2, 0, 2, 2}));
  EXPECT_EQ(sent[0].end - sent[0].start, 8'800us);
  EXPECT_EQ(sent[2].end - sent[2].start, 550us);
  EXPECT_EQ(link.counters().transmitted_bytes, Bytes{8 * 1100});
}

double share_of(const std::vector<Transmission>& sent, std::size_t mode) {
  const auto count = std::ranges::count(sent, mode, &Transmission::mode);
  return static_cast<double>(count) / static_cast<double>(sent.size());
}

TEST(RateAdaptation, MinstrelFindsTheFastestModeThatIsReceived) {
  for (std::size_t best = 0; best < modes.size(); ++best) {
    Direction link = make(adapting(Minstrel{}));
    const std::int16_t snr = std::vector<std::int16_t>{500, 1100, 1900}[best];
    const auto sent = send(link, 2000, {.snr = [snr](std::uint64_t) { return snr; }});
    // One packet in ten looks around, and is repeated where it is lost.
    EXPECT_GT(share_of(sent, best), 0.7) << "mode " << best;
  }
}

TEST(RateAdaptation, MinstrelLeavesAModeThatIsReceivedNoMore) {
  Direction link = make(adapting(Minstrel{}));
  const auto sent = send(link, 4000, {.snr = [](std::uint64_t number) -> std::int16_t {
                           return number < 2000 ? 1900 : 1100;
                         }});
  const std::vector<Transmission> late(sent.end() - 1000, sent.end());
  EXPECT_GT(share_of(late, 1), 0.7);
}

TEST(RateAdaptation, AReplayOfTheOutcomesChoosesTheSame) {
  for (const AdaptationScheme& scheme :
       {AdaptationScheme{SnrTable{{4.0, 10.0, 18.0}}}, AdaptationScheme{Minstrel{}}}) {
    DirectionConfig config = adapting(scheme);
    Direction radio = make(config);
    const Channel channel{.snr = [](std::uint64_t number) -> std::int16_t {
      return static_cast<std::int16_t>(300 + number * 7919 % 1800);
    }};
    const auto sent = send(radio, 1000, channel);
    TraceLoss losses{{}, 1U << 31U};
    for (const Transmission& each : sent) {
      const std::int16_t snr = channel.snr(each.number);
      config.rate_adaptation->recorded_snr.push_back(snr);
      if (snr < channel.needed[each.mode]) losses.lost.push_back(each.number);
    }
    config.loss = losses;
    // By JSON, as a replay gets it.
    Direction replayed = make(read_direction({to_json(config), nlohmann::json::json_pointer()}));
    std::vector<Departure> departures;
    for (std::size_t i = 0; i < 1000; ++i) {
      replayed.offer({.size = Bytes{1000}, .tag = i}, replayed.now(), departures);
    }
    while (const auto next = replayed.next_event()) replayed.advance(*next, departures);
    ASSERT_EQ(replayed.resolved().size(), sent.size());
    for (std::size_t i = 0; i < sent.size(); ++i) {
      EXPECT_EQ(replayed.resolved()[i].mode, sent[i].mode) << i;
      EXPECT_EQ(replayed.resolved()[i].end, sent[i].end) << i;
    }
  }
}

TEST(RateAdaptation, WithoutFeedbackIsRefused) {
  nlohmann::json config = to_json(adapting(Minstrel{}));
  const auto refusal = [&config] {
    try {
      read_direction({config, nlohmann::json::json_pointer()});
    } catch (const ConfigError& error) {
      return error.where().to_string() + ": " + error.what();
    }
    return std::string("none");
  };
  EXPECT_EQ(refusal(), "none");
  config["rate_adaptation"]["modes"][2]["rate_bps"] = 1000;
  EXPECT_EQ(refusal(), "/rate_adaptation/modes/2: slower than the previous mode");
  config["rate_adaptation"]["modes"] = nlohmann::json::array();
  EXPECT_EQ(refusal(), "/rate_adaptation/modes: 0 modes");
  config = to_json(adapting(SnrTable{{1.0, 2.0}}));
  EXPECT_EQ(refusal(), "/rate_adaptation/min_snr_db: 2 SNRs for 3 modes");
  config = to_json(adapting(Minstrel{}));
  config.erase("arq");
  EXPECT_EQ(refusal(), "/rate_adaptation: rate adaptation without feedback");
}

}  // namespace
}  // namespace nagi::model
