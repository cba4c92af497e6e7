// SPDX-License-Identifier: Apache-2.0
#include "daemon/replay.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "daemon/packet_record.hpp"
#include "io/input_error.hpp"

namespace nagi::daemon {

namespace {

using model::Duration;
using model::Instant;

/// Replaces what became of `records`, which are one lane's, by what `direction` makes of them.
void replay_lane(model::Direction& direction, std::vector<PacketRecord>& records) {
  std::vector<model::Departure> departures;
  const auto settle = [&] {
    for (const model::Departure& departure : departures) {
      PacketRecord& record = records[departure.packet.tag];
      record.left_ns = departure.at.time_since_epoch().count();
      record.fate = fate_code(departure.fate, departure.packet);
    }
    departures.clear();
  };
  for (std::size_t tag = 0; tag < records.size(); ++tag) {
    PacketRecord& record = records[tag];
    const Instant at{Duration{record.arrived_ns}};
    if (at < direction.now()) {
      throw InputError("packet " + std::to_string(record.index) + " of lane " +
                       std::to_string(record.lane) +
                       " arrives before the one before it; the record is damaged");
    }
    record.late_ns = 0;
    const bool ecn_capable = (record.fate & ecn_capable_bit) != 0;
    direction.offer({{record.bytes}, tag, ecn_capable}, at, departures);
    settle();
  }
  while (const auto next = direction.next_event()) {
    direction.advance(*next, departures);
    settle();
  }
}

}  // namespace

void replay(const Config& config, const std::string& recorded, const std::string& output) {
  std::vector<std::vector<PacketRecord>> lanes(config.links.size() * 2);
  for (const PacketRecord& record : read_records(recorded)) {
    if (record.lane >= lanes.size()) {
      throw InputError(recorded + ": has packets of lane " + std::to_string(record.lane) +
                       ", the configuration has " + std::to_string(lanes.size()) +
                       " lanes; give the configuration it was recorded with");
    }
    lanes[record.lane].push_back(record);
  }
  std::ofstream file(output, std::ios::binary);
  const PacketRecordHeader header;
  file.write(reinterpret_cast<const char*>(&header), sizeof header);
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    std::vector<PacketRecord>& records = lanes[lane];
    std::ranges::sort(records, {}, [](const PacketRecord& record) {
      return std::pair(record.arrived_ns, record.index);
    });
    const LinkConfig& link = config.links[lane / 2];
    const bool back = lane % 2 != 0;
    model::Direction direction(back ? link.b_to_a : link.a_to_b, config.seed, link.id,
                               back ? model::Way::b_to_a : model::Way::a_to_b);
    replay_lane(direction, records);
    file.write(reinterpret_cast<const char*>(records.data()),
               static_cast<std::streamsize>(records.size() * sizeof(PacketRecord)));
  }
  file.close();
  if (!file) {
    throw InputError(output + ": cannot write it: " + std::strerror(errno) +
                     "; give a path in a directory that exists and is yours");
  }
}

}  // namespace nagi::daemon
