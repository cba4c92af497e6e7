// SPDX-License-Identifier: Apache-2.0
//
// The decoded fields of a TCP or UDP packet, and the reasons why other packets belong to no
// connection.
#pragma once

#include <array>
#include <cstdint>

namespace nagi::captures {

/// The reasons why a packet belongs to no connection.
enum class Unused : std::uint8_t {
  none,
  link_type,
  not_ip,
  not_tcp_or_udp,
  fragment,
  cut_short,
  bad_header,
  failed_check,
};
constexpr std::size_t unused_reasons = 8;
constexpr std::array<const char*, unused_reasons> unused_names = {
    "",
    "link type is not read",
    "not IP",
    "neither TCP nor UDP",
    "later fragment",
    "captured too short",
    "bad header",
    "failed the check of its frame (FCS)",
};

constexpr std::uint8_t flag_fin = 1;
constexpr std::uint8_t flag_syn = 2;
constexpr std::uint8_t flag_rst = 4;
constexpr std::uint8_t flag_psh = 8;
constexpr std::uint8_t flag_ack = 16;
constexpr std::uint8_t flag_cwr = 128;

constexpr std::uint8_t protocol_tcp = 6;
constexpr std::uint8_t protocol_udp = 17;

/// The addresses and ports of a packet, in network byte order and in the packet's direction.
struct Endpoints {
  std::array<std::uint64_t, 2> source{};  // IPv4: the first four bytes
  std::array<std::uint64_t, 2> destination{};
  // Source port, destination port (16 bits each), protocol and version of IP (8 bits each), in one
  // word, so that they are written and compared at once.
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
  /// Return the endpoints of the opposite direction.
  [[nodiscard]] Endpoints reversed() const {
    const std::uint64_t ports = (rest & 0xffff) << 16 | (rest >> 16 & 0xffff);
    return {destination, source, (rest & ~std::uint64_t{0xffffffff}) | ports};
  }
  /// Return whether `other` are the endpoints of the opposite direction.
  [[nodiscard]] bool is_reverse_of(const Endpoints& other) const {
    const std::uint64_t ports = (rest & 0xffff) << 16 | (rest >> 16 & 0xffff);
    return ((source[0] ^ other.destination[0]) | (source[1] ^ other.destination[1]) |
            (destination[0] ^ other.source[0]) | (destination[1] ^ other.source[1]) |
            (((rest & ~std::uint64_t{0xffffffff}) | ports) ^ other.rest)) == 0;
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
  std::uint32_t content = 0;  // for UDP without identification: hash of the payload's first bytes
  std::uint16_t window = 0;
  std::uint16_t identification = 0;
  std::uint16_t checksum = 0;
  std::uint16_t mss = 0;  // 0 if absent
  std::uint8_t flags = 0;
  std::uint8_t sack_blocks = 0;   // number of blocks in the packet
  std::uint8_t sack_edges = 0;    // number of edges in `sack`, two per block
  std::int8_t window_scale = -1;  // -1 if absent
  std::uint8_t hops = 0;          // TTL or hop limit
  bool has_timestamps = false;
  bool sack_permitted = false;
  bool options_cut = false;             // the capture lacks some of TCP's options
  bool resent_frame = false;            // the link layer repeats the frame (802.11: Retry)
  std::array<std::uint32_t, 8> sack{};  // begin, end, begin, end ...

  /// Return how many sequence numbers the packet takes: SEG.LEN of RFC 9293, section 3.4.
  [[nodiscard]] std::uint32_t sequence_length() const {
    return payload + ((flags & flag_syn) != 0 ? 1 : 0) + ((flags & flag_fin) != 0 ? 1 : 0);
  }
  /// Return the identity that nagi-link records for the packet: see runtime/io/ip_header.hpp.
  [[nodiscard]] std::uint32_t identity() const {
    const bool has_numbers = endpoints.version() == 6 && endpoints.protocol() == protocol_tcp;
    const std::uint32_t high = has_numbers ? sequence + acknowledgement : identification;
    return high << 16 | checksum;
  }
};

}  // namespace nagi::captures
