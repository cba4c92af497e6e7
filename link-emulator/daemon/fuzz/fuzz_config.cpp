// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the reader of configurations. Any text is either refused by an InputError, or results in a
// configuration that is equal after writing and reading it, and through which packets can pass.
#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "daemon/config.hpp"
#include "model/direction_json.hpp"
#include "model/medium/medium.hpp"

namespace {

using namespace nagi;
using daemon::MediumSettings;

/// Pass a few packets from each of up to four stations through a medium, for a second.
void pass_packets(const MediumSettings& settings, std::uint64_t seed) {
  model::Medium medium(settings.config, seed, settings.id);
  model::MediumEvents events;
  std::uint64_t offered = 0;
  const auto stations = static_cast<model::StationIndex>(medium.stations());
  for (std::uint64_t tag = 0; tag < 20; ++tag) {
    for (model::StationIndex station = 0; station < std::min(stations, 4U); ++station, ++offered) {
      model::Packet packet{{40 + 100 * tag}, tag << 8 | station};
      packet.next_hop = tag % 5 == 0 ? model::everybody : (station + 1) % stations;
      if (*packet.next_hop == station) packet.next_hop = model::nobody;
      medium.offer(station, packet, Instant{Duration(tag * 999)}, events);
    }
  }
  medium.advance(Instant{std::chrono::seconds(1)}, events);
  std::uint64_t held = 0;
  for (model::StationIndex station = 0; station < stations; ++station) held += medium.held(station);
  if (events.departures.size() + held != offered) std::abort();
}

/// Pass a few packets through a direction. The number of events is limited, because a link may be
/// very slow.
void pass_packets(const model::DirectionConfig& config, std::uint64_t seed) {
  model::Direction direction(config, seed, 0, model::DirectionName::forward);
  std::vector<model::Departure> departures;
  for (std::uint64_t tag = 0; tag < 20; ++tag) {
    direction.offer({{40 + 100 * tag}, tag, tag % 2 == 0 ? model::Ecn::ect0 : model::Ecn::ect1},
                    Instant{Duration(tag * 999)}, departures);
  }
  for (int i = 0; i < 1000; ++i) {
    const auto next = direction.next_event();
    if (!next) break;
    direction.advance(*next, departures);
  }
  if (departures.size() + direction.held() != 20) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const daemon::Config config = daemon::read_config(
        runtime::JsonSource("fuzz", std::string(reinterpret_cast<const char*>(data), size)));
    const std::string once = to_json(config).dump();
    for (const daemon::LinkConfig& link : config.links) {
      pass_packets(link.forward, config.seed);
      pass_packets(link.backward, config.seed);
    }
    for (const MediumSettings& medium : config.media) pass_packets(medium, config.seed);
    const runtime::JsonSource again("again", once);
    if (to_json(daemon::read_config(again)).dump() != once) std::abort();
  } catch (const InputError&) {
  }
  return 0;
}
