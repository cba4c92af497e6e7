// SPDX-License-Identifier: Apache-2.0
//
// From a captured frame to the fields of its TCP or UDP packet. Link layers: Ethernet with stacked
// VLAN tags (IEEE 802.1Q, 802.1ad), Linux cooked (SLL, SLL2), raw IP, BSD loopback. RFC 791, RFC
// 8200 with extension headers, RFC 9293, RFC 768; options: RFC 9293, 7323, 2018.
//
// Lengths come from the IP header: what is padding of the link layer is not counted, and frames may
// be cut anywhere after the fixed TCP header. Where the IP header has no length (segments that a
// network card is yet to split), it is the frame's.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "native/capture_file.hpp"

namespace nagi::captures {

/// Why a packet is in no connection.
enum class Unused : std::uint8_t {
  none,
  link_type,
  not_ip,
  not_tcp_or_udp,
  fragment,
  cut_short,
  bad_header,
};
constexpr std::size_t unused_reasons = 7;
constexpr std::array<const char*, unused_reasons> unused_names = {
    "",
    "link type is not read",
    "not IP",
    "neither TCP nor UDP",
    "later fragment",
    "captured too short",
    "bad header",
};

constexpr std::uint8_t flag_fin = 1;
constexpr std::uint8_t flag_syn = 2;
constexpr std::uint8_t flag_rst = 4;
constexpr std::uint8_t flag_ack = 16;

constexpr std::uint8_t protocol_tcp = 6;
constexpr std::uint8_t protocol_udp = 17;

/// Who talks to whom, as the packet has it: addresses and ports in network byte order.
struct Endpoints {
  std::array<std::uint64_t, 2> source{};  // IPv4: the first four bytes
  std::array<std::uint64_t, 2> destination{};
  // In one word, which is written and compared at once: source port, destination port (16 bits
  // each), protocol, version of IP (8 bits each).
  std::uint64_t rest = 0;

  void set_rest(std::uint32_t both_ports, std::uint8_t protocol_number, std::uint8_t ip_version) {
    rest = both_ports | std::uint64_t{protocol_number} << 32 | std::uint64_t{ip_version} << 40;
  }
  [[nodiscard]] std::uint16_t source_port() const { return static_cast<std::uint16_t>(rest); }
  [[nodiscard]] std::uint16_t destination_port() const {
    return static_cast<std::uint16_t>(rest >> 16);
  }
  [[nodiscard]] std::uint8_t protocol() const { return static_cast<std::uint8_t>(rest >> 32); }
  [[nodiscard]] std::uint8_t version() const { return static_cast<std::uint8_t>(rest >> 40); }
  [[nodiscard]] Endpoints turned() const {
    const std::uint64_t ports = (rest & 0xffff) << 16 | (rest >> 16 & 0xffff);
    return {destination, source, (rest & ~std::uint64_t{0xffffffff}) | ports};
  }
  bool operator==(const Endpoints& other) const {
    return ((source[0] ^ other.source[0]) | (source[1] ^ other.source[1]) |
            (destination[0] ^ other.destination[0]) | (destination[1] ^ other.destination[1]) |
            (rest ^ other.rest)) == 0;
  }
};

struct Packet {
  Endpoints endpoints;
  std::int64_t time_ns = 0;
  std::uint32_t ip_bytes = 0;
  std::uint32_t payload = 0;
  std::uint32_t sequence = 0;
  std::uint32_t acknowledgement = 0;
  std::uint32_t tsval = 0;
  std::uint32_t tsecr = 0;
  std::uint16_t window = 0;
  std::uint16_t identification = 0;
  std::uint16_t checksum = 0;
  std::uint16_t mss = 0;  // 0: not there
  std::uint8_t flags = 0;
  std::uint8_t sack_blocks = 0;
  std::int8_t window_scale = -1;  // -1: not there
  bool has_timestamps = false;
  bool sack_permitted = false;
};

constexpr bool known_link_type(std::uint32_t type) {
  switch (type) {
    case 0:    // BSD loopback
    case 1:    // Ethernet
    case 12:   // raw IP, as some systems number it
    case 14:   // the same
    case 101:  // raw IP
    case 108:  // OpenBSD loopback
    case 113:  // Linux cooked
    case 228:  // raw IPv4
    case 229:  // raw IPv6
    case 276:  // Linux cooked, version 2
      return true;
    default:
      return false;
  }
}

namespace decoding {

inline std::uint16_t half(const std::uint8_t* at) {
  std::uint16_t value = 0;
  std::memcpy(&value, at, sizeof(value));
  return __builtin_bswap16(value);
}
inline std::uint32_t word(const std::uint8_t* at) {
  std::uint32_t value = 0;
  std::memcpy(&value, at, sizeof(value));
  return __builtin_bswap32(value);
}

constexpr std::uint16_t type_ipv4 = 0x0800;
constexpr std::uint16_t type_ipv6 = 0x86dd;

/// The options between `at` and `end`; what is malformed ends them.
inline void options(const std::uint8_t* at, const std::uint8_t* end, Packet& packet) {
  while (at < end) {
    const std::uint8_t kind = *at;
    if (kind == 0) return;
    if (kind == 1) {
      ++at;
      continue;
    }
    if (end - at < 2) return;
    const std::uint8_t length = at[1];
    if (length < 2 || length > end - at) return;
    if (kind == 2 && length == 4) {
      packet.mss = half(at + 2);
    } else if (kind == 3 && length == 3) {
      packet.window_scale = static_cast<std::int8_t>(at[2] > 14 ? 14 : at[2]);  // RFC 7323, 2.3
    } else if (kind == 4 && length == 2) {
      packet.sack_permitted = true;
    } else if (kind == 5) {
      packet.sack_blocks = static_cast<std::uint8_t>((length - 2) / 8);
    } else if (kind == 8 && length == 10) {
      packet.has_timestamps = true;
      packet.tsval = word(at + 2);
      packet.tsecr = word(at + 6);
    }
    at += length;
  }
}

inline void set_ports(const std::uint8_t* at, std::uint8_t protocol, std::uint8_t version,
                      Packet& packet) {
  std::uint32_t ports = 0;
  std::memcpy(&ports, at, sizeof(ports));
  packet.endpoints.set_rest(ports, protocol, version);
}

inline Unused tcp(const std::uint8_t* at, const std::uint8_t* end, std::uint32_t bytes,
                  std::uint8_t version, Packet& packet) {
  if (bytes < 20) return Unused::bad_header;
  if (end - at < 20) return Unused::cut_short;
  const std::uint32_t header = (at[12] >> 4) * 4U;
  if (header < 20 || header > bytes) return Unused::bad_header;
  set_ports(at, protocol_tcp, version, packet);
  packet.sequence = word(at + 4);
  packet.acknowledgement = word(at + 8);
  packet.flags = at[13];
  packet.window = half(at + 14);
  packet.checksum = half(at + 16);
  packet.payload = bytes - header;
  packet.has_timestamps = false;
  packet.tsval = packet.tsecr = 0;
  packet.sack_blocks = 0;
  packet.mss = 0;
  packet.window_scale = -1;
  packet.sack_permitted = false;
  if (header == 32 && end - at >= 32 && word(at + 20) == 0x0101080a) [[likely]] {
    packet.has_timestamps = true;
    packet.tsval = word(at + 24);
    packet.tsecr = word(at + 28);
  } else if (header > 20) {
    const std::uint8_t* options_end = at + header;
    options(at + 20, options_end < end ? options_end : end, packet);
  }
  return Unused::none;
}

inline Unused udp(const std::uint8_t* at, const std::uint8_t* end, std::uint32_t bytes,
                  std::uint8_t version, Packet& packet) {
  if (bytes < 8) return Unused::bad_header;
  if (end - at < 8) return Unused::cut_short;
  const std::uint32_t length = half(at + 4);
  if (length != 0 && (length < 8 || length > bytes)) return Unused::bad_header;
  const Endpoints endpoints = packet.endpoints;
  const std::int64_t time_ns = packet.time_ns;
  const std::uint32_t ip_bytes = packet.ip_bytes;
  const std::uint16_t identification = packet.identification;
  packet = Packet{};
  packet.endpoints = endpoints;
  packet.time_ns = time_ns;
  packet.ip_bytes = ip_bytes;
  packet.identification = identification;
  set_ports(at, protocol_udp, version, packet);
  packet.checksum = half(at + 6);
  packet.payload = (length == 0 ? bytes : length) - 8;
  return Unused::none;
}

inline Unused transport(std::uint8_t protocol, std::uint8_t version, const std::uint8_t* at,
                        const std::uint8_t* end, std::uint32_t bytes, Packet& packet) {
  if (protocol == protocol_tcp) [[likely]] {
    return tcp(at, end, bytes, version, packet);
  }
  if (protocol == protocol_udp) return udp(at, end, bytes, version, packet);
  return Unused::not_tcp_or_udp;
}

/// `length`: of the packet on the wire, as the link layer has it.
inline Unused ipv4(const std::uint8_t* at, const std::uint8_t* end, std::uint32_t length,
                   Packet& packet) {
  if (end - at < 20) return Unused::cut_short;
  const std::uint32_t header = (at[0] & 15) * 4U;
  if (at[0] >> 4 != 4 || header < 20) return Unused::bad_header;
  std::uint32_t bytes = half(at + 2);
  if (bytes == 0) bytes = length;
  if (bytes < header) return Unused::bad_header;
  if ((half(at + 6) & 0x1fff) != 0) return Unused::fragment;
  if (static_cast<std::uint32_t>(end - at) < header) return Unused::cut_short;
  packet.ip_bytes = bytes;
  packet.identification = half(at + 4);
  std::uint32_t address = 0;
  std::memcpy(&address, at + 12, 4);
  packet.endpoints.source = {address, 0};
  std::memcpy(&address, at + 16, 4);
  packet.endpoints.destination = {address, 0};
  return transport(at[9], 4, at + header, end, bytes - header, packet);
}

inline Unused ipv6(const std::uint8_t* at, const std::uint8_t* end, std::uint32_t length,
                   Packet& packet) {
  if (end - at < 40) return Unused::cut_short;
  if (at[0] >> 4 != 6) return Unused::bad_header;
  std::uint32_t bytes = half(at + 4);
  if (bytes == 0) {
    if (length < 40) return Unused::bad_header;
    bytes = length - 40;
  }
  packet.ip_bytes = bytes + 40;
  packet.identification = 0;
  std::memcpy(packet.endpoints.source.data(), at + 8, 16);
  std::memcpy(packet.endpoints.destination.data(), at + 24, 16);
  std::uint8_t next = at[6];
  at += 40;
  while (true) {
    std::uint32_t header = 0;
    switch (next) {
      case 0:    // hop by hop
      case 43:   // routing
      case 60:   // destination options
      case 135:  // mobility
      case 139:  // host identity
      case 140:  // shim6
        if (end - at < 8) return Unused::cut_short;
        header = (at[1] + 1U) * 8;
        break;
      case 44:  // fragment
        if (end - at < 8) return Unused::cut_short;
        if ((half(at + 2) & 0xfff8) != 0) return Unused::fragment;
        header = 8;
        break;
      case 51:  // authentication
        if (end - at < 8) return Unused::cut_short;
        header = (at[1] + 2U) * 4;
        break;
      default:
        return transport(next, 6, at, end, bytes, packet);
    }
    if (header > bytes) return Unused::bad_header;
    if (static_cast<std::uint32_t>(end - at) < header) return Unused::cut_short;
    next = at[0];
    at += header;
    bytes -= header;
  }
}

inline Unused internet(std::uint16_t type, const std::uint8_t* at, const std::uint8_t* end,
                       std::uint32_t length, Packet& packet) {
  while (type == 0x8100 || type == 0x88a8 || type == 0x9100) {
    if (end - at < 4) return Unused::cut_short;
    type = half(at + 2);
    at += 4;
    length -= length < 4 ? length : 4;
  }
  if (type == type_ipv4) [[likely]] {
    return ipv4(at, end, length, packet);
  }
  if (type == type_ipv6) return ipv6(at, end, length, packet);
  return Unused::not_ip;
}

}  // namespace decoding

/// Reads the headers of a captured frame. `packet` has its fields if the answer is Unused::none.
inline Unused decode(const Record& record, Packet& packet) {
  using namespace decoding;
  const std::uint8_t* at = record.data;
  const std::uint8_t* end = at + record.captured;
  // Tools that cut packets sometimes leave a length smaller than what they kept.
  constexpr std::uint32_t longest = 1U << 24;
  const std::uint32_t length =
      std::min(longest, record.length < record.captured ? record.captured : record.length);
  packet.time_ns = record.time_ns;
  std::uint32_t link_header = 0;
  std::uint16_t type = 0;
  switch (record.link_type) {
    [[likely]] case 1:
      if (record.captured < 14) return Unused::cut_short;
      type = half(at + 12);
      link_header = 14;
      break;
    case 113:
      if (record.captured < 16) return Unused::cut_short;
      type = half(at + 14);
      link_header = 16;
      break;
    case 276:
      if (record.captured < 20) return Unused::cut_short;
      type = half(at);
      link_header = 20;
      break;
    case 12:
    case 14:
    case 101:
    case 228:
    case 229: {
      if (record.captured < 1) return Unused::cut_short;
      const int version = at[0] >> 4;
      type = version == 4 ? type_ipv4 : version == 6 ? type_ipv6 : std::uint16_t{0};
      break;
    }
    case 0:
    case 108: {
      if (record.captured < 4) return Unused::cut_short;
      std::uint32_t family = word(at);  // in the byte order of who captured, a small number
      if (family > 0xffff) family = __builtin_bswap32(family);
      type = family == 2                                                      ? type_ipv4
             : (family == 10 || family == 24 || family == 28 || family == 30) ? type_ipv6
                                                                              : std::uint16_t{0};
      link_header = 4;
      break;
    }
    default:
      return Unused::link_type;
  }
  return internet(type, at + link_header, end, length - link_header, packet);
}

}  // namespace nagi::captures
