// SPDX-License-Identifier: Apache-2.0
//
// Decodes a captured frame to the fields of its TCP or UDP packet. Standards: RFC 791, RFC 8200
// with extension headers, RFC 9293, RFC 768; for options, RFC 9293, 7323, 2018. Link layers are in
// link_layer.cpp, tunnels and fragments in tunnels.cpp, names of protocols in names.cpp.
//
// A fragmented datagram counts once, with its whole length. UDP counts at the first fragment, whose
// header has the length; TCP counts when both the first and the last fragment have been captured.
// The other fragments of the datagram count as unused.
//
// Lengths come from the IP header, so padding of the link layer does not count. The capture may
// lack any bytes after the fixed TCP header. If the length in the IP header is 0 (large segments
// that the network card splits later), the length is that of the frame.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "native/capture_file.hpp"
#include "native/packet.hpp"

namespace nagi::captures {

namespace decoding {

inline std::uint16_t big_endian_16(const std::uint8_t* at) {
  std::uint16_t value = 0;
  std::memcpy(&value, at, sizeof(value));
  return __builtin_bswap16(value);
}
inline std::uint32_t big_endian_32(const std::uint8_t* at) {
  std::uint32_t value = 0;
  std::memcpy(&value, at, sizeof(value));
  return __builtin_bswap32(value);
}

constexpr std::uint16_t type_ipv4 = 0x0800;
constexpr std::uint16_t type_ipv6 = 0x86dd;

/// Decode TCP's options in [at, end), until the first malformed option.
inline void decode_options(const std::uint8_t* at, const std::uint8_t* end, Packet& packet) {
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
      packet.mss = big_endian_16(at + 2);
    } else if (kind == 3 && length == 3) {
      packet.window_scale = static_cast<std::int8_t>(at[2] > 14 ? 14 : at[2]);  // RFC 7323, 2.3
    } else if (kind == 4 && length == 2) {
      packet.sack_permitted = true;
    } else if (kind == 5) {
      packet.sack_blocks = static_cast<std::uint8_t>((length - 2) / 8);
      packet.sack_edges = std::min<std::uint8_t>(2 * packet.sack_blocks, 8);
      for (std::uint8_t i = 0; i < packet.sack_edges; ++i)
        packet.sack[i] = big_endian_32(at + 2 + 4 * i);
    } else if (kind == 8 && length == 10) {
      packet.has_timestamps = true;
      packet.tsval = big_endian_32(at + 2);
      packet.tsecr = big_endian_32(at + 6);
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

inline Unused decode_tcp(const std::uint8_t* at, const std::uint8_t* end, std::uint32_t bytes,
                         std::uint8_t version, Packet& packet) {
  if (bytes < 20) return Unused::bad_header;
  if (end - at < 20) return Unused::cut_short;
  const std::uint32_t header = (at[12] >> 4) * 4U;
  if (header < 20 || header > bytes) return Unused::bad_header;
  set_ports(at, protocol_tcp, version, packet);
  packet.sequence = big_endian_32(at + 4);
  packet.acknowledgement = big_endian_32(at + 8);
  packet.flags = at[13];
  packet.window = big_endian_16(at + 14);
  packet.checksum = big_endian_16(at + 16);
  packet.payload = bytes - header;
  packet.has_timestamps = false;
  packet.tsval = packet.tsecr = 0;
  packet.sack_blocks = packet.sack_edges = 0;
  packet.mss = 0;
  packet.window_scale = -1;
  packet.sack_permitted = false;
  packet.options_cut = at + header > end;
  packet.content = 0;
  if (header == 32 && end - at >= 32 && big_endian_32(at + 20) == 0x0101080a) [[likely]] {
    packet.has_timestamps = true;
    packet.tsval = big_endian_32(at + 24);
    packet.tsecr = big_endian_32(at + 28);
  } else if (header > 20) {
    const std::uint8_t* options_end = at + header;
    decode_options(at + 20, options_end < end ? options_end : end, packet);
  }
  return Unused::none;
}

inline Unused decode_udp(const std::uint8_t* at, const std::uint8_t* end, std::uint32_t bytes,
                         std::uint8_t version, Packet& packet) {
  if (bytes < 8) return Unused::bad_header;
  if (end - at < 8) return Unused::cut_short;
  const std::uint32_t length = big_endian_16(at + 4);
  if (length != 0 && (length < 8 || length > bytes)) return Unused::bad_header;
  Packet fresh;  // a packet with only those fields that IP and the link layer set
  fresh.endpoints = packet.endpoints;
  fresh.time_ns = packet.time_ns;
  fresh.ip_bytes = packet.ip_bytes;
  fresh.identification = packet.identification;
  fresh.hops = packet.hops;
  fresh.resent_frame = packet.resent_frame;
  packet = fresh;
  set_ports(at, protocol_udp, version, packet);
  packet.checksum = big_endian_16(at + 6);
  packet.payload = (length == 0 ? bytes : length) - 8;
  // Without an identification, only the payload distinguishes datagrams of the same length. IPv6
  // has no identification, and for IPv4 it may be 0.
  constexpr std::uint32_t looked_at = 16;
  const std::uint32_t content = std::min(packet.payload, looked_at);
  if (packet.identification == 0 && end - at >= static_cast<std::ptrdiff_t>(8 + content)) {
    for (std::uint32_t i = 0; i < content; ++i) {
      packet.content = (packet.content ^ at[8 + i]) * 0x01000193;  // FNV-1a
    }
  }
  return Unused::none;
}

}  // namespace decoding

/// The last header of a packet that the decoder could decode, to name packets in no connection.
struct LastHeader {
  enum class Kind : std::uint8_t { link_type, ether_type, llc, ppp, ip_protocol, wifi, nothing };
  Kind kind = Kind::nothing;
  std::uint32_t number = 0;
  auto operator<=>(const LastHeader&) const = default;
};
/// Return the name of a packet's protocol: "ARP", "ICMP", "Ethernet type 0x88b5".
std::string protocol_name(const LastHeader& header);
/// Return the name of a link type: "Ethernet", "USB (USBPcap)", "link type 999" if it is unknown.
std::string link_type_name(std::uint32_t link_type);
/// Return whether frames of a link type are decoded.
bool is_decoded_link_type(std::uint32_t link_type);

/// A part of a frame that has not been decoded yet.
struct Piece {
  const std::uint8_t* at = nullptr;
  const std::uint8_t* end = nullptr;  // end of the captured bytes
  std::uint32_t length = 0;           // on the wire

  [[nodiscard]] bool has(std::ptrdiff_t bytes) const { return end - at >= bytes; }
  void skip(std::uint32_t bytes) {
    at += bytes;
    length -= std::min(length, bytes);
  }
};

class Decoder {
 public:
  /// If `tunnels` is set, decode the packets within GRE, VXLAN, Geneve, GTP-U and IP-in-IP in place
  /// of the outer packets.
  explicit Decoder(bool tunnels) : tunnels_(tunnels) {}
  Decoder() = default;

  /// Decode the headers of a captured frame into `packet`. Return Unused::none, or the reason why
  /// the frame has no TCP or UDP packet; the content of `packet` is then undefined.
  Unused decode(const Record& record, Packet& packet) {
    // Tools that truncate packets sometimes write a length below the number of captured bytes.
    constexpr std::uint32_t longest = 1U << 24;
    const std::uint32_t length =
        std::min(longest, record.length < record.captured ? record.captured : record.length);
    packet.time_ns = record.time_ns;
    packet.resent_frame = false;
    depth_ = 0;
    if (record.failed_check) [[unlikely]] {
      last_header_ = {LastHeader::Kind::link_type, record.link_type};
      return Unused::failed_check;
    }
    const Piece frame{record.data, record.data + record.captured, length};
    if (record.link_type == 1 && record.captured >= 14 &&
        decoding::big_endian_16(record.data + 12) == decoding::type_ipv4) [[likely]] {
      return decode_ipv4({frame.at + 14, frame.end, length - 14}, packet);
    }
    last_header_ = {LastHeader::Kind::link_type, record.link_type};
    return decode_link(record.link_type, frame, packet);
  }
  /// Return the number of frames with further packets, which are not decoded (802.11: A-MSDU).
  [[nodiscard]] std::int64_t frames_of_several() const { return frames_of_several_; }
  /// Return the last header of the packet that decode() rejected.
  [[nodiscard]] const LastHeader& last_header() const { return last_header_; }

 private:
  /// A fragmented TCP datagram that lacks its first or its last fragment.
  struct Fragmented {
    Endpoints endpoints;
    std::uint32_t identification = 0;
    std::uint32_t total = 0;  // bytes of IP payload; 0: the last fragment is missing
    bool has_first = false;
    Packet packet;
  };
  struct Fragment {
    std::uint32_t identification = 0;
    std::uint32_t offset = 0;
    bool more = false;
  };
  static constexpr std::size_t max_fragmented = 64;
  static constexpr int max_depth = 8;  // nesting of tunnels, and of frames within frames

  // link_layer.cpp
  Unused decode_link(std::uint32_t link_type, Piece frame, Packet& packet);
  Unused decode_ethernet(Piece frame, Packet& packet);
  Unused decode_network(std::uint32_t type, Piece piece, Packet& packet);
  Unused decode_llc(Piece piece, Packet& packet);
  Unused decode_ppp(Piece piece, Packet& packet);
  Unused decode_hdlc(Piece piece, Packet& packet);
  Unused decode_mpls(Piece piece, Packet& packet);
  Unused decode_ip(Piece piece, Packet& packet);
  Unused decode_wifi(Piece piece, bool padded, Packet& packet);
  Unused decode_radiotap(Piece piece, Packet& packet);
  Unused decode_ppi(Piece piece, Packet& packet);
  Unused decode_nflog(Piece piece, Packet& packet);
  /// Record the last header, and return the reason `why` the packet belongs to no connection.
  Unused reject(LastHeader::Kind kind, std::uint32_t number, Unused why = Unused::not_ip) {
    last_header_ = {kind, number};
    return why;
  }
  // tunnels.cpp
  Unused decode_other_protocol(std::uint8_t protocol, Piece inside, Packet& packet);
  Unused decode_gre(Piece piece, Packet& packet);
  bool decode_tunnel_in_udp(Piece payload, Packet& packet);
  Unused decode_fragment(const Fragment& fragment, std::uint8_t protocol, std::uint8_t version,
                         const Piece& inside, Packet& packet);

  Unused decode_transport(std::uint8_t protocol, std::uint8_t version, const Piece& inside,
                          Packet& packet) {
    if (protocol == protocol_tcp) [[likely]] {
      last_header_ = {LastHeader::Kind::ip_protocol, protocol};
      return decoding::decode_tcp(inside.at, inside.end, inside.length, version, packet);
    }
    if (protocol == protocol_udp) {
      last_header_ = {LastHeader::Kind::ip_protocol, protocol};
      const Unused unused =
          decoding::decode_udp(inside.at, inside.end, inside.length, version, packet);
      if (tunnels_ && unused == Unused::none) [[unlikely]] {
        decode_tunnel_in_udp({inside.at + 8, inside.end, packet.payload}, packet);
      }
      return unused;
    }
    return decode_other_protocol(protocol, inside, packet);
  }

  /// Decode an IPv4 packet; `piece.length` is its length according to the link layer.
  Unused decode_ipv4(const Piece& piece, Packet& packet) {
    using namespace decoding;
    const std::uint8_t* at = piece.at;
    if (!piece.has(20)) return reject(LastHeader::Kind::ether_type, type_ipv4, Unused::cut_short);
    const std::uint32_t header = (at[0] & 15) * 4U;
    std::uint32_t bytes = big_endian_16(at + 2);
    if (bytes == 0) bytes = piece.length;
    if (at[0] >> 4 != 4 || header < 20 || bytes < header) {
      return reject(LastHeader::Kind::ether_type, type_ipv4, Unused::bad_header);
    }
    if (!piece.has(header))
      return reject(LastHeader::Kind::ether_type, type_ipv4, Unused::cut_short);
    packet.ip_bytes = bytes;
    packet.identification = big_endian_16(at + 4);
    packet.hops = at[8];
    std::uint32_t address = 0;
    std::memcpy(&address, at + 12, 4);
    packet.endpoints.source = {address, 0};
    std::memcpy(&address, at + 16, 4);
    packet.endpoints.destination = {address, 0};
    const Piece inside{at + header, piece.end, bytes - header};
    const std::uint16_t offset_and_flags = big_endian_16(at + 6);
    if ((offset_and_flags & 0x3fff) != 0) [[unlikely]] {
      return decode_fragment({packet.identification, (offset_and_flags & 0x1fffU) * 8,
                              (offset_and_flags & 0x2000) != 0},
                             at[9], 4, inside, packet);
    }
    return decode_transport(at[9], 4, inside, packet);
  }
  Unused decode_ipv6(Piece piece, Packet& packet);

  bool tunnels_ = false;
  int depth_ = 0;
  std::int64_t frames_of_several_ = 0;
  LastHeader last_header_;
  std::vector<Fragmented> fragmented_;
  std::size_t oldest_fragmented_ = 0;
};

}  // namespace nagi::captures
