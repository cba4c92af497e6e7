// SPDX-License-Identifier: Apache-2.0
#include "daemon/replay.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <numeric>

#include "daemon/packet_record.hpp"
#include "io/input_error.hpp"

namespace nagi::daemon {

namespace {

model::Packet make_packet(const PacketRecord& arrival, std::uint64_t tag) {
  model::Packet packet;
  packet.size = {arrival.bytes};
  packet.tag = tag;
  packet.ecn = model::Ecn{arrival.ecn};
  packet.flow = arrival.flow;
  if (arrival.next_hop != 0) packet.next_hop = next_hop_of(arrival.next_hop);
  return packet;
}

constexpr std::int64_t latest_arrival_ns = 366LL * 86'400 * 1'000'000'000;  // after the epoch

/// Throw InputError if the model cannot accept the arrival in a record. nagi-link does not write
/// such records. `receivers` is the number of stations of the medium, or 0 for a link.
void require_possible(const PacketRecord& record, std::size_t receivers, const std::string& name) {
  const auto next_hop = next_hop_of(record.next_hop);
  const bool has_next_hop =
      record.next_hop != 0 &&
      (next_hop == model::everybody || next_hop == model::nobody || next_hop < receivers);
  if (record.arrived_ns >= 0 && record.arrived_ns <= latest_arrival_ns && record.ecn <= 3 &&
      (receivers == 0 ? record.next_hop == 0 : has_next_hop)) {
    return;
  }
  throw InputError(name + ": packet " + std::to_string(record.index) + " of direction " +
                   std::to_string(record.direction) +
                   " has an impossible arrival; the file is damaged, so repeat the run");
}

/// Pass `arrivals` through `direction`. Return their records with the results, in the order of
/// arrival, each followed by its copies.
std::vector<PacketRecord> replay_direction(model::Direction& direction,
                                           const std::vector<PacketRecord>& arrivals) {
  std::vector<PacketRecord> packets = arrivals;
  std::multimap<std::uint64_t, PacketRecord> copies;
  std::vector<model::Departure> departures;
  const auto store_results = [&] {
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
                       " arrives before the previous packet; the file is damaged");
    }
    direction.offer(make_packet(arrival, tag), at, departures);
    store_results();
  }
  while (const auto next = direction.next_event()) {
    direction.advance(*next, departures);
    store_results();
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

/// Pass the arrivals of a medium's stations through the medium. The numbers of the stations in
/// packet_record.hpp begin with `first`. Return their records with the results, station by station,
/// in the order of arrival.
std::vector<PacketRecord> replay_medium(const MediumSettings& settings, std::uint64_t seed,
                                        std::size_t first,
                                        const std::vector<std::vector<PacketRecord>>& arrivals) {
  std::vector<PacketRecord> packets;
  for (std::size_t station = 0; station < settings.stations.size(); ++station) {
    packets.insert(packets.end(), arrivals[first + station].begin(),
                   arrivals[first + station].end());
  }
  std::vector<std::size_t> order(packets.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t tag) { return packets[tag].arrived_ns; });
  model::Medium medium(settings.config, seed, settings.id);
  model::MediumEvents events;
  const auto store_results = [&] {
    for (const auto& [from, departure] : events.departures) {
      PacketRecord& record = packets[departure.packet.tag];
      record.left_ns = departure.at.time_since_epoch().count();
      record.late_ns = 0;
      record.fate = fate_code(departure.fate);
      record.flags = flags_of(departure.packet);
    }
    events = {};
  };
  for (PacketRecord& record : packets) {
    record.left_ns = 0;
    record.fate = fate_held;
    record.flags = 0;
  }
  for (const std::size_t tag : order) {
    const PacketRecord& arrival = packets[tag];
    medium.offer(static_cast<model::StationIndex>(arrival.direction - first),
                 make_packet(arrival, tag), Instant{Duration{arrival.arrived_ns}}, events);
    store_results();
  }
  while (const auto next = medium.next_delivery()) {
    medium.advance(*next, events);
    store_results();
  }
  return packets;
}

}  // namespace

void replay(const Config& config, const std::string& recorded, const std::string& output) {
  std::vector<std::size_t> receivers(config.links.size() * 2, 0);  // of each direction
  for (const MediumSettings& medium : config.media) {
    receivers.insert(receivers.end(), medium.stations.size(), medium.stations.size());
  }
  std::vector<std::vector<PacketRecord>> arrivals(receivers.size());
  for (const PacketRecord& record : read_records(recorded)) {
    if ((record.flags & copy_flag) != 0) continue;  // a copy is no arrival
    if (record.direction >= arrivals.size()) {
      throw InputError(recorded + ": has packets of direction " + std::to_string(record.direction) +
                       ", the configuration has " + std::to_string(arrivals.size()) +
                       " directions; give the configuration with which the packets were recorded");
    }
    require_possible(record, receivers[record.direction], recorded);
    arrivals[record.direction].push_back(record);
  }
  std::ofstream file(output, std::ios::binary);
  const PacketRecordHeader header;
  file.write(reinterpret_cast<const char*>(&header), sizeof header);
  const auto write = [&file](const std::vector<PacketRecord>& replayed) {
    file.write(reinterpret_cast<const char*>(replayed.data()),
               static_cast<std::streamsize>(replayed.size() * sizeof(PacketRecord)));
  };
  for (std::vector<PacketRecord>& records : arrivals) {
    std::ranges::sort(records, {}, [](const PacketRecord& record) {
      return std::pair(record.arrived_ns, record.index);
    });
  }
  for (std::size_t number = 0; number < config.links.size() * 2; ++number) {
    const LinkConfig& link = config.links[number / 2];
    const bool back = number % 2 != 0;
    model::Direction direction(
        back ? link.backward : link.forward, config.seed, link.id,
        back ? model::DirectionName::backward : model::DirectionName::forward);
    write(replay_direction(direction, arrivals[number]));
  }
  std::size_t first = config.links.size() * 2;
  for (const MediumSettings& medium : config.media) {
    write(replay_medium(medium, config.seed, first, arrivals));
    first += medium.stations.size();
  }
  file.close();
  if (!file) {
    throw InputError(output + ": cannot write it: " + std::strerror(errno) +
                     "; give a path in a directory that exists and is yours");
  }
}

}  // namespace nagi::daemon
