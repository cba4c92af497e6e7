// SPDX-License-Identifier: Apache-2.0
//
// What happens to packets on the way. Statistical tests are seeded, two-sided at significance 0.001
// (|z| < 3.29).
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "model/direction.hpp"
#include "model/effects/in_flight.hpp"

namespace nagi::model {
namespace {

using namespace std::chrono_literals;

constexpr int packets = 100'000;
constexpr double critical_z = 3.29;

double z_of(std::uint64_t count, double probability) {
  return (static_cast<double>(count) - packets * probability) /
         std::sqrt(packets * probability * (1 - probability));
}

/// Packets a millisecond apart on a link of 20 ms.
std::vector<Departure> send(Direction& link) {
  std::vector<Departure> departures;
  for (int tag = 0; tag < packets; ++tag) {
    link.offer({{1000}, static_cast<std::uint64_t>(tag)}, Instant{tag * 1ms}, departures);
  }
  while (const auto next = link.next_event()) link.advance(*next, departures);
  return departures;
}

Direction make(const EffectConfigs& effects) {
  DirectionConfig config;
  config.delay = 20ms;
  config.effects = effects;
  return {config, 2008, 0, DirectionName::forward};
}

// H0: each packet is corrupted with probability 0.02.
TEST(Corruption, HasItsShareAndChangesNothingElse) {
  Direction link = make({Corruption{0.02}, std::nullopt, std::nullopt});
  for (const Departure& departure : send(link)) {
    EXPECT_EQ(departure.at, Instant{static_cast<std::int64_t>(departure.packet.tag) * 1ms + 20ms});
  }
  EXPECT_EQ(link.counters().delivered, static_cast<std::uint64_t>(packets));
  EXPECT_LT(std::abs(z_of(link.counters().corrupted, 0.02)), critical_z);
}

// H0: each packet is duplicated with probability 0.02.
TEST(Duplication, HasItsShareAndCopiesComeJustBeforeThePacket) {
  Direction link = make({std::nullopt, Duplication{0.02}, std::nullopt});
  const std::vector<Departure> departures = send(link);
  for (std::size_t i = 0; i < departures.size(); ++i) {
    if (!departures[i].is_copy) continue;
    ASSERT_LT(i + 1, departures.size());
    EXPECT_EQ(departures[i + 1].packet.tag, departures[i].packet.tag);
    EXPECT_EQ(departures[i + 1].at, departures[i].at);
    EXPECT_FALSE(departures[i + 1].is_copy);
  }
  EXPECT_EQ(link.counters().delivered, static_cast<std::uint64_t>(packets));
  EXPECT_EQ(departures.size(), packets + link.counters().duplicated);
  EXPECT_LT(std::abs(z_of(link.counters().duplicated, 0.02)), critical_z);
}

// H0: each packet is held back with probability 0.02.
TEST(Reordering, HasItsShareAndHoldsOnlyThoseBack) {
  Direction link = make({std::nullopt, std::nullopt, Reordering{0.02, 5500us}});
  std::uint64_t held_back = 0;
  std::map<std::uint64_t, Instant> arrived;
  for (const Departure& departure : send(link)) {
    const Instant sent{static_cast<std::int64_t>(departure.packet.tag) * 1ms};
    const Duration taken = departure.at - sent;
    EXPECT_TRUE(taken == 20ms || taken == 25500us);
    held_back += taken == 20ms ? 0 : 1;
    arrived[departure.packet.tag] = departure.at;
  }
  EXPECT_EQ(held_back, link.counters().reordered);
  EXPECT_LT(std::abs(z_of(held_back, 0.02)), critical_z);
}

TEST(InFlight, ArrivesInOrderOfInstantsThenOfSending) {
  InFlight way;
  const auto send = [&way](std::uint64_t tag, Duration at, bool keeps_order) {
    way.send({{{1000}, tag}, Instant{at}, keeps_order}, true);
  };
  send(1, 5ms, true);
  send(2, 9ms, false);  // held back on purpose
  send(3, 6ms, true);   // overtakes it
  send(4, 4ms, true);   // waits for 3
  send(5, 9ms, false);
  EXPECT_EQ(way.size(), 5U);
  std::vector<std::pair<std::uint64_t, Duration>> seen;
  while (!way.is_empty()) {
    const Instant next = way.next();
    const Arrival arrival = way.take_next();
    EXPECT_EQ(arrival.at, next);
    seen.emplace_back(arrival.packet.tag, arrival.at.time_since_epoch());
  }
  EXPECT_EQ(seen, (std::vector<std::pair<std::uint64_t, Duration>>{
                      {1, 5ms}, {3, 6ms}, {4, 6ms}, {2, 9ms}, {5, 9ms}}));
}

}  // namespace
}  // namespace nagi::model
