// SPDX-License-Identifier: Apache-2.0
//
// The frame that bench-source sends and bench-sink counts: Ethernet, IPv4 (RFC 791), UDP (RFC 768,
// no checksum), then a stamp (frame_stamp.h).
#pragma once

#include <arpa/inet.h>
#include <linux/if_ether.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "frame_stamp.h"

namespace nagi::bench {

constexpr std::size_t stamp_offset = BENCH_STAMP_OFFSET;
constexpr std::size_t min_frame_bytes =
    std::max<std::size_t>(ETH_ZLEN, stamp_offset + sizeof(bench_stamp));

using MacAddress = std::array<std::uint8_t, ETH_ALEN>;

/// The addresses of sender and receiver.
struct Ends {
  MacAddress source_mac{};
  MacAddress destination_mac{};
  in_addr source{};
  in_addr destination{};
};

/// Write a frame without its number and time. `bytes` is the length from the Ethernet header to the
/// end, without FCS.
inline void write_frame(std::uint8_t* frame, std::size_t bytes, const Ends& ends) {
  constexpr std::uint16_t port = 9;  // discard, RFC 863
  const auto put16 = [frame](std::size_t at, std::size_t value) {
    frame[at] = static_cast<std::uint8_t>(value >> 8);
    frame[at + 1] = static_cast<std::uint8_t>(value);
  };
  std::memset(frame, 0, bytes);
  std::memcpy(frame, ends.destination_mac.data(), ETH_ALEN);
  std::memcpy(frame + ETH_ALEN, ends.source_mac.data(), ETH_ALEN);
  put16(12, ETH_P_IP);

  const std::size_t ip = ETH_HLEN;
  frame[ip] = 0x45;
  put16(ip + 2, bytes - ETH_HLEN);
  put16(ip + 6, 0x4000);  // don't fragment
  frame[ip + 8] = 64;     // time to live
  frame[ip + 9] = 17;     // UDP
  std::memcpy(frame + ip + 12, &ends.source, 4);
  std::memcpy(frame + ip + 16, &ends.destination, 4);
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < BENCH_IP_HEADER_BYTES; i += 2) {
    sum += static_cast<std::uint32_t>(frame[ip + i] << 8 | frame[ip + i + 1]);
  }
  sum = (sum & 0xffff) + (sum >> 16);
  put16(ip + 10, ~(sum + (sum >> 16)) & 0xffff);

  const std::size_t udp = ip + BENCH_IP_HEADER_BYTES;
  put16(udp, port);
  put16(udp + 2, port);
  put16(udp + 4, bytes - udp);
  const bench_stamp stamp{BENCH_FRAME_MARK, 0, 0};
  std::memcpy(frame + stamp_offset, &stamp, sizeof stamp);
}

}  // namespace nagi::bench
