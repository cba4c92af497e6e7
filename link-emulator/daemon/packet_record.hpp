// SPDX-License-Identifier: Apache-2.0
//
// packets.bin: what became of every packet that came in, so that anybody can give the same arrivals
// to the model again and must find the same. A header and records of one size, little-endian:
//
//   header   8 bytes "nagi-pkt", version (32 bit, 1), bytes of a record (32 bit, 32)
//   record   arrived_ns   int64    when the packet entered the model, since the epoch
//            left_ns      int64    when it was due at the far end, or dropped; 0 while it is held
//            index        uint32   counts the packets of its lane, modulo 2^32
//            identity     uint32   see io/ip_header.hpp
//            late_ns      int32    by how much later than due it was handed to the kernel; at most
//                                  2^31 - 1
//            bytes        uint16   IP bytes
//            lane         uint8    link's place in the configuration x 2, + 1 for b to a
//            fate         uint8    bits 0-3: 0 delivered, 1 queue overflow, 2 channel loss, 3 held;
//                                  bit 4: ECN-capable; bit 5: marked
//
// Records stand in the order in which packets left.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/link.hpp"

namespace nagi::daemon {

struct PacketRecord {
  std::int64_t arrived_ns = 0;
  std::int64_t left_ns = 0;
  std::uint32_t index = 0;
  std::uint32_t identity = 0;
  std::int32_t late_ns = 0;
  std::uint16_t bytes = 0;
  std::uint8_t lane = 0;
  std::uint8_t fate = 0;
};
static_assert(sizeof(PacketRecord) == 32);

struct PacketRecordHeader {
  std::array<char, 8> magic = {'n', 'a', 'g', 'i', '-', 'p', 'k', 't'};
  std::uint32_t version = 1;
  std::uint32_t record_bytes = sizeof(PacketRecord);
};
static_assert(sizeof(PacketRecordHeader) == 16);

constexpr std::size_t max_recorded_links = 128;  // a lane's number has 8 bits
constexpr std::uint8_t fate_held = 3;
constexpr std::uint8_t fate_mask = 15;
constexpr std::uint8_t ecn_capable_bit = 1 << 4;
constexpr std::uint8_t marked_bit = 1 << 5;

inline std::uint8_t fate_code(model::Fate fate, const model::Packet& packet) {
  return static_cast<std::uint8_t>(static_cast<unsigned>(fate) |
                                   (packet.ecn_capable ? ecn_capable_bit : 0U) |
                                   (packet.marked ? marked_bit : 0U));
}

/// Reads a file of records. Throws InputError if it is none.
std::vector<PacketRecord> read_records(const std::string& path);

}  // namespace nagi::daemon
