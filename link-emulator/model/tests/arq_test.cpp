// SPDX-License-Identifier: Apache-2.0
//
// Links that repeat what was lost, and radios, whose losses somebody else tells. Schedules computed
// by hand, to the nanosecond; and that a radio and a trace of the same losses come to the same.
#include <gtest/gtest.h>

#include <random>

#include "model/direction.hpp"
#include "model/direction_json.hpp"

namespace nagi::model {
namespace {

using namespace std::chrono_literals;

constexpr Bytes full{1000};  // 1 ms at 8 Mb/s

Instant at(Duration since_epoch) { return Instant{since_epoch}; }

struct Event {
  std::uint64_t tag;
  Fate fate;
  Duration at;
  bool operator==(const Event&) const = default;
};

void PrintTo(const Event& event, std::ostream* out) {
  *out << "packet " << event.tag << " fate " << static_cast<int>(event.fate) << " at "
       << event.at.count() << " ns";
}

std::vector<Event> events(const std::vector<Departure>& departures) {
  std::vector<Event> all;
  for (const Departure& departure : departures) {
    all.push_back({departure.packet.tag, departure.fate, departure.at.time_since_epoch()});
  }
  return all;
}

DirectionConfig repeating(std::vector<std::uint64_t> lost, unsigned retries) {
  DirectionConfig config;
  config.rate = Bitrate{8'000'000};
  config.delay = 20ms;
  config.loss = TraceLoss{std::move(lost), 1000};
  config.arq = ArqConfig{retries, 5ms};
  return config;
}

Direction make(const DirectionConfig& config) { return {config, 1, 0, DirectionName::forward}; }

std::vector<Departure> run(Direction& link) {
  std::vector<Departure> departures;
  while (const auto next = link.next_event()) link.advance(*next, departures);
  return departures;
}

TEST(Arq, RepeatsAfterTheFeedbackAndTheFarEndKeepsTheOrder) {
  Direction link = make(repeating({0}, 3));
  std::vector<Departure> departures;
  for (std::uint64_t tag = 0; tag < 2; ++tag) link.offer({full, tag}, at(0ms), departures);
  // The first ends at 1 ms and is lost, which is known at 6 ms; it ends again at 7 ms.
  EXPECT_EQ(events(run(link)),
            (std::vector<Event>{{0, Fate::delivered, 27ms}, {1, Fate::delivered, 27ms}}));
  ASSERT_EQ(link.resolved().size(), 3U);
  const Transmission& again = link.resolved()[2];
  EXPECT_EQ(again.number, 2U);
  EXPECT_EQ(again.attempt, 2U);
  EXPECT_EQ(again.start, at(6ms));
  EXPECT_FALSE(again.lost);
  EXPECT_EQ(link.counters().transmitted, 3U);
  EXPECT_EQ(link.counters().transmitting, 3ms);
}

TEST(Arq, WithoutOrderLaterOnesArriveFirst) {
  DirectionConfig config = repeating({0}, 3);
  config.keep_order = false;
  Direction link = make(config);
  std::vector<Departure> departures;
  for (std::uint64_t tag = 0; tag < 2; ++tag) link.offer({full, tag}, at(0ms), departures);
  EXPECT_EQ(events(run(link)),
            (std::vector<Event>{{1, Fate::delivered, 22ms}, {0, Fate::delivered, 27ms}}));
}

TEST(Arq, GivesUpAfterItsRetriesAndLetsTheOthersPass) {
  Direction link = make(repeating({0, 2, 3}, 2));
  std::vector<Departure> departures;
  for (std::uint64_t tag = 0; tag < 2; ++tag) link.offer({full, tag}, at(0ms), departures);
  // Attempts end at 1, 7 and 13 ms.
  EXPECT_EQ(events(run(link)),
            (std::vector<Event>{{0, Fate::channel_loss, 13ms}, {1, Fate::delivered, 33ms}}));
  EXPECT_EQ(link.held(), 0U);
}

TEST(Arq, RepetitionsGoBeforeWhatWaits) {
  Direction link = make(repeating({0}, 1));
  std::vector<Departure> departures;
  for (std::uint64_t tag = 0; tag < 10; ++tag) link.offer({full, tag}, at(0ms), departures);
  run(link);
  ASSERT_EQ(link.resolved().size(), 11U);
  // Known at 6 ms, when the sixth ends: nothing that waits goes before it.
  EXPECT_EQ(link.resolved()[6].packet.tag, 0U);
  EXPECT_EQ(link.resolved()[6].start, at(6ms));
}

// The far end no longer waits for what it once had to, nor for what passed while it did not wait.
TEST(Arq, ReleasesWhatItHeldBackWhenOrderNoLongerMatters) {
  for (const bool arq_stays : {true, false}) {
    Direction link = make(repeating({0}, 3));
    std::vector<Departure> departures;
    for (std::uint64_t tag = 0; tag < 3; ++tag) link.offer({full, tag}, at(0ms), departures);
    DirectionConfig config = repeating({0}, 3);
    config.keep_order = false;
    if (!arq_stays) config.arq.reset();
    link.change(config, at(2500us), departures);
    while (const auto next = link.next_event()) link.advance(*next, departures);
    EXPECT_EQ(link.held(), 0U);
    EXPECT_EQ(link.counters().delivered, 3U);
  }
}

DirectionConfig radio() {
  DirectionConfig config;
  config.rate = Bitrate{8'000'000};
  config.delay = 20ms;
  config.loss = RadioLoss{};
  return config;
}

TEST(Radio, TellsWhatBeginsAndWaitsForTheOutcomeUntilThePacketIsDue) {
  Direction link = make(radio());
  std::vector<Departure> departures;
  for (std::uint64_t tag = 0; tag < 2; ++tag) link.offer({full, tag}, at(0ms), departures);
  ASSERT_EQ(link.started().size(), 1U);
  EXPECT_EQ(link.started()[0].end, at(1ms));
  link.advance(at(1ms), departures);
  ASSERT_EQ(link.started().size(), 2U);
  EXPECT_EQ(link.started()[1].start, at(1ms));
  link.report(false);
  EXPECT_FALSE(link.awaits_outcome());

  link.advance(at(50ms), departures);
  EXPECT_EQ(events(departures), (std::vector<Event>{{0, Fate::delivered, 21ms}}));
  EXPECT_TRUE(link.awaits_outcome());
  EXPECT_EQ(link.now(), at(22ms));
  EXPECT_EQ(link.held(), 1U);

  link.report(true);
  EXPECT_FALSE(link.awaits_outcome());
  departures.clear();
  link.advance(at(50ms), departures);
  EXPECT_EQ(events(departures), (std::vector<Event>{{1, Fate::channel_loss, 2ms}}));
  EXPECT_EQ(link.now(), at(50ms));
  EXPECT_EQ(link.held(), 0U);
}

TEST(Radio, NeedsTheOutcomeWithTheFeedback) {
  DirectionConfig config = radio();
  config.arq = ArqConfig{1, 5ms};
  Direction link = make(config);
  std::vector<Departure> departures;
  link.offer({full, 0}, at(0ms), departures);
  link.advance(at(50ms), departures);
  EXPECT_TRUE(link.awaits_outcome());
  EXPECT_EQ(link.now(), at(6ms));
}

TEST(Radio, ComesToTheSameAsATraceOfItsLosses) {
  for (const unsigned retries : {0U, 1U, 3U}) {
    for (const Duration feedback : {Duration{0}, Duration{3ms}, Duration{40ms}}) {
      std::mt19937 random(retries * 100 + static_cast<unsigned>(feedback.count() % 97));
      DirectionConfig config = radio();
      config.queue = DropTail{Packets{20}};
      config.jitter = {UniformJitter{2ms}};
      if (retries > 0) config.arq = ArqConfig{retries, feedback};
      Direction told = make(config);
      TraceLoss losses{{}, 1'000'000};
      std::uint64_t number = 0;
      std::vector<Departure> seen;
      const auto reach = [&](Instant to) {
        do {
          told.advance(to, seen);
          for (std::size_t i = 0; i < told.started().size(); ++i, ++number) {
            const bool lost = random() % 4 == 0;
            if (lost) losses.lost.push_back(number);
            told.report(lost);
          }
          told.started().clear();
        } while (told.now() < to);
      };
      std::vector<std::pair<Instant, Packet>> arrivals;
      for (std::uint64_t tag = 0; tag < 2000; ++tag) {
        const Duration when{static_cast<std::int64_t>(tag * 900'000 + random() % 800'000)};
        arrivals.push_back({at(when), {{40 + random() % 1000}, tag}});
      }
      for (const auto& [when, packet] : arrivals) {
        reach(when);
        told.offer(packet, when, seen);
      }
      reach(at(60s));

      config.loss = losses;
      Direction replayed = make(config);
      std::vector<Departure> again;
      for (const auto& [when, packet] : arrivals) replayed.offer(packet, when, again);
      replayed.advance(at(60s), again);
      const auto by_tag = [](const Event& one, const Event& other) { return one.tag < other.tag; };
      std::vector<Event> first = events(seen);
      std::vector<Event> second = events(again);
      std::ranges::sort(first, by_tag);
      std::ranges::sort(second, by_tag);
      EXPECT_EQ(first, second) << retries << " retries, feedback " << feedback.count() << " ns";
      EXPECT_EQ(first.size(), arrivals.size());
      EXPECT_EQ(told.held(), 0U);
    }
  }
}

TEST(Arq, IsReadAndWrittenAndRefusedWhereItMakesNoSense) {
  const auto read = [](const char* text) {
    return read_direction({nlohmann::json::parse(text), nlohmann::json::json_pointer()});
  };
  const DirectionConfig config =
      read(R"({"loss": {"model": "radio"}, "arq": {"retries": 3, "feedback_ns": 8000000}})");
  EXPECT_EQ(to_json(config).at("loss").at("model"), "radio");
  EXPECT_EQ(to_json(config).at("arq"),
            nlohmann::json::parse(R"({"retries": 3, "feedback_ns": 8000000})"));
  EXPECT_THROW(read(R"({"arq": {"retries": 0, "feedback_ns": 1}})"), ConfigError);
  EXPECT_THROW(read(R"({"arq": {"retries": 1}})"), ConfigError);
  EXPECT_THROW(read(R"({"loss": {"model": "radio", "at": "ingress"}})"), ConfigError);
  EXPECT_THROW(
      read(
          R"({"loss": {"model": "none", "at": "ingress"}, "arq": {"retries": 1, "feedback_ns": 1}})"),
      ConfigError);
}

}  // namespace
}  // namespace nagi::model
