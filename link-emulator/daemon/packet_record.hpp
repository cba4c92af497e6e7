// SPDX-License-Identifier: Apache-2.0
//
// packets.bin: one record per packet that arrived. With these records, the same arrivals can pass
// through the model again, to compare the results. The file is a header and records of one size,
// little-endian:
//
//   header   8 bytes "nagi-pkt", version (32 bit, 2), bytes of a record (32 bit, 40)
//   record   arrived_ns   int64    time at which the packet entered the model, since the epoch
//            left_ns      int64    time at which the packet was due or dropped; 0 while it is held
//            index        uint32   number of the packet in its direction, modulo 2^32
//            identity     uint32   see io/ip_header.hpp
//            late_ns      int32    time from `left_ns` until the packet was handed to the
//                                  kernel, at most 2^31 - 1
//            flow         uint32   hash of the flow if the queue distinguishes flows, else 0
//            bytes        uint16   IP bytes
//            direction    uint8    2 x the link's position in the configuration, + 1 for backward;
//                                  the stations of media follow in their order
//            fate         uint8    0 delivered, 1 queue overflow, 2 channel loss, 3 held,
//                                  4 dropped by active queue management (AQM), 5 given up by a
//                                  station of a medium
//            ecn          uint8    ECN field at arrival
//            flags        uint8    bit 0: marked; bit 1: corrupted; bit 2: a duplicate of
//                                  the packet with the same index
//            next_hop     uint16   on a medium: position of the destination station, + 1; 65535 for
//                                  broadcasts, 65534 for a destination elsewhere; else 0
//
// Records are in the order in which the packets left.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/direction.hpp"
#include "model/medium/air_frame.hpp"

namespace nagi::daemon {

struct PacketRecord {
  std::int64_t arrived_ns = 0;
  std::int64_t left_ns = 0;
  std::uint32_t index = 0;
  std::uint32_t identity = 0;
  std::int32_t late_ns = 0;
  std::uint32_t flow = 0;
  std::uint16_t bytes = 0;
  std::uint8_t direction = 0;
  std::uint8_t fate = 0;
  std::uint8_t ecn = 0;
  std::uint8_t flags = 0;
  std::uint16_t next_hop = 0;
};
static_assert(sizeof(PacketRecord) == 40);

struct PacketRecordHeader {
  std::array<char, 8> magic = {'n', 'a', 'g', 'i', '-', 'p', 'k', 't'};
  std::uint32_t version = 2;
  std::uint32_t record_bytes = sizeof(PacketRecord);
};
static_assert(sizeof(PacketRecordHeader) == 16);

constexpr std::size_t max_recorded_directions = 256;  // a direction's number has 8 bits
constexpr std::uint8_t marked_flag = 1;
constexpr std::uint8_t corrupted_flag = 2;
constexpr std::uint8_t copy_flag = 4;

/// The fate of packets that are still held.
constexpr std::uint8_t fate_held = 3;
inline std::uint8_t fate_code(model::Fate fate) {
  if (fate == model::Fate::aqm_drop) return 4;
  return fate == model::Fate::retry_limit ? 5 : static_cast<std::uint8_t>(fate);
}
inline std::uint16_t next_hop_code(std::uint32_t next_hop) {
  return static_cast<std::uint16_t>(next_hop < model::nobody ? next_hop + 1 : next_hop);
}
inline std::uint8_t flags_of(const model::Packet& packet, bool is_copy = false) {
  return static_cast<std::uint8_t>((packet.marked ? marked_flag : 0U) |
                                   (packet.corrupted ? corrupted_flag : 0U) |
                                   (is_copy ? copy_flag : 0U));
}

inline std::uint32_t next_hop_of(std::uint16_t code) {
  return code < 0xFFFE ? code - 1U : 0xFFFF'0000U | code;
}

/// Read a file of records. Throws InputError if the file has another format or is truncated.
std::vector<PacketRecord> read_records(const std::string& path);

}  // namespace nagi::daemon
