// SPDX-License-Identifier: Apache-2.0
//
// Schedules computed by hand, to the nanosecond, and losses that follow from a seed:
// schedules.json, which the FPGA link emulator is held to as well.
//
// A case is a direction's configuration (model/direction_json.hpp), a seed, arrivals (`count` of
// them, each `every_ns` after the one before) and what becomes of them; packets are counted from 0:
//   departures  packet, fate, instant in ns; with less than all packets, of these alone
//   lost        the packets with fate channel_loss; no others
//   marked      the packets that are marked; no others
//   counters    of DirectionCounters
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "model/direction.hpp"
#include "model/direction_json.hpp"

namespace nagi::model {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

std::vector<json> cases() {
  std::ifstream file(NAGI_SCHEDULES);
  return json::parse(file).get<std::vector<json>>();
}

Ecn ecn_of(const std::string& name) {
  const std::map<std::string, Ecn> known = {
      {"not_ect", Ecn::not_ect}, {"ect0", Ecn::ect0}, {"ect1", Ecn::ect1}, {"ce", Ecn::ce}};
  return known.at(name);
}

Fate fate_of(const std::string& name) {
  const std::map<std::string, Fate> known = {{"delivered", Fate::delivered},
                                             {"queue_overflow", Fate::queue_overflow},
                                             {"channel_loss", Fate::channel_loss}};
  return known.at(name);
}

std::int64_t counter(const DirectionCounters& counters, const std::string& name) {
  const std::map<std::string, std::int64_t> known = {
      {"offered", counters.offered},
      {"delivered", counters.delivered},
      {"delivered_bytes", counters.delivered_bytes.count},
      {"queue_overflows", counters.queue_overflows},
      {"channel_losses", counters.channel_losses},
      {"marked", counters.marked},
      {"transmitted", counters.transmitted},
      {"transmitted_bytes", counters.transmitted_bytes.count},
      {"transmitting_ns", counters.transmitting.count()},
      {"max_waiting", counters.max_waiting}};
  return known.at(name);
}

class Schedule : public testing::TestWithParam<json> {};

TEST_P(Schedule, IsKept) {
  const json& known = GetParam();
  const DirectionConfig config = read_direction({known.at("direction"), json::json_pointer()});
  Direction link(config, known.at("seed"), 0, DirectionName::forward);
  std::vector<Departure> departures;
  std::uint64_t packets = 0;
  for (const json& arrival : known.at("arrivals")) {
    for (std::int64_t n = 0; n < arrival.value("count", 1); ++n) {
      const Duration at{arrival.at("at_ns").get<std::int64_t>() + n * arrival.value("every_ns", 0)};
      const Packet packet{.size = {arrival.at("bytes")},
                          .tag = packets++,
                          .ecn = ecn_of(arrival.value("ecn", "not_ect"))};
      link.offer(packet, Instant{at}, departures);
    }
  }
  link.advance(Instant{10'000'000s}, departures);

  std::map<std::uint64_t, Departure> found;
  std::vector<std::uint64_t> lost;
  std::vector<std::uint64_t> marked;
  for (const Departure& departure : departures) found[departure.packet.tag] = departure;
  for (const auto& [tag, departure] : found) {
    if (departure.fate == Fate::channel_loss) lost.push_back(tag);
    if (departure.packet.marked) marked.push_back(tag);
  }
  EXPECT_EQ(found.size(), packets);
  for (const json& expected : known.value("departures", json::array())) {
    const Departure& departure = found.at(expected.at(0));
    EXPECT_EQ(departure.fate, fate_of(expected.at(1))) << expected;
    EXPECT_EQ(departure.at.time_since_epoch().count(), expected.at(2)) << expected;
  }
  if (known.contains("lost")) {
    EXPECT_EQ(json(lost), known.at("lost"));
  }
  EXPECT_EQ(json(marked), known.value("marked", json::array()));
  const json counters = known.value("counters", json::object());
  for (const auto& [name, value] : counters.items()) {
    EXPECT_EQ(counter(link.counters(), name), value) << name;
  }
}

std::string name_of(const testing::TestParamInfo<json>& schedule) {
  return schedule.param.at("name");
}
INSTANTIATE_TEST_SUITE_P(Known, Schedule, testing::ValuesIn(cases()), name_of);

}  // namespace
}  // namespace nagi::model
