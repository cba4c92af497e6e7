// SPDX-License-Identifier: Apache-2.0
#include "daemon/replay.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>

#include "daemon/packet_record.hpp"
#include "io/input_error.hpp"

namespace nagi::daemon {

namespace {

using model::Duration;
using model::Instant;

/// What `direction` makes of `arrivals`, which are its own: the same records with what becomes of
/// them, in the order of their arrival, each followed by its copies.
std::vector<PacketRecord> replay_direction(model::Direction& direction,
                                           const std::vector<PacketRecord>& arrivals) {
  std::vector<PacketRecord> packets = arrivals;
  std::multimap<std::uint64_t, PacketRecord> copies;
  std::vector<model::Departure> departures;
  const auto settle = [&] {
    for (const model::Departure& departure : departures) {
      const std::uint64_t tag = departure.packet.tag;
      PacketRecord& record =
          departure.is_copy ? copies.emplace(tag, arrivals[tag])->second : packets[tag];
      record.left_ns = departure.at.time_since_epoch().count();
      record.late_ns = 0;
      record.fate = fate_code(departure.fate);
      record.flags = flags_of(departure.packet, departure.is_copy);
    }
    departures.clear();
  };
  for (std::size_t tag = 0; tag < arrivals.size(); ++tag) {
    const PacketRecord& arrival = arrivals[tag];
    const Instant at{Duration{arrival.arrived_ns}};
    if (at < direction.now()) {
      throw InputError("packet " + std::to_string(arrival.index) + " of direction " +
                       std::to_string(arrival.direction) +
                       " arrives before the one before it; the record is damaged");
    }
    direction.offer({{arrival.bytes}, tag, model::Ecn{arrival.ecn}, arrival.flow}, at, departures);
    settle();
  }
  while (const auto next = direction.next_event()) {
    direction.advance(*next, departures);
    settle();
  }
  if (copies.empty()) return packets;
  std::vector<PacketRecord> replayed;
  for (std::size_t tag = 0; tag < packets.size(); ++tag) {
    replayed.push_back(packets[tag]);
    const auto [first, last] = copies.equal_range(tag);
    for (auto copy = first; copy != last; ++copy) replayed.push_back(copy->second);
  }
  return replayed;
}

}  // namespace

void replay(const Config& config, const std::string& recorded, const std::string& output) {
  std::vector<std::vector<PacketRecord>> arrivals(config.links.size() * 2);
  for (const PacketRecord& record : read_records(recorded)) {
    if ((record.flags & copy_flag) != 0) continue;  // did not arrive
    if (record.direction >= arrivals.size()) {
      throw InputError(recorded + ": has packets of direction " + std::to_string(record.direction) +
                       ", the configuration has " + std::to_string(arrivals.size()) +
                       " directions; give the configuration it was recorded with");
    }
    arrivals[record.direction].push_back(record);
  }
  std::ofstream file(output, std::ios::binary);
  const PacketRecordHeader header;
  file.write(reinterpret_cast<const char*>(&header), sizeof header);
  for (std::size_t number = 0; number < arrivals.size(); ++number) {
    std::vector<PacketRecord>& records = arrivals[number];
    std::ranges::sort(records, {}, [](const PacketRecord& record) {
      return std::pair(record.arrived_ns, record.index);
    });
    const LinkConfig& link = config.links[number / 2];
    const bool back = number % 2 != 0;
    model::Direction direction(
        back ? link.backward : link.forward, config.seed, link.id,
        back ? model::DirectionName::backward : model::DirectionName::forward);
    const std::vector<PacketRecord> replayed = replay_direction(direction, records);
    file.write(reinterpret_cast<const char*>(replayed.data()),
               static_cast<std::streamsize>(replayed.size() * sizeof(PacketRecord)));
  }
  file.close();
  if (!file) {
    throw InputError(output + ": cannot write it: " + std::strerror(errno) +
                     "; give a path in a directory that exists and is yours");
  }
}

}  // namespace nagi::daemon
