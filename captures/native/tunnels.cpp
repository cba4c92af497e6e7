// SPDX-License-Identifier: Apache-2.0
//
// Decodes the contents of IP packets other than TCP and UDP: extension headers of IPv6, fragments
// and tunnels. The tunnels are GRE (RFC 2784, 2890; version 1 of PPTP, RFC 2637), IP in IP (RFC
// 2003, 4213), VXLAN (RFC 7348), Geneve (RFC 8926) and GTP-U (3GPP TS 29.281). If the packet within
// a UDP tunnel is neither TCP nor UDP, the outer UDP packet counts.
#include "native/decode.hpp"

namespace nagi::captures {

using namespace decoding;

Unused Decoder::decode_ipv6(Piece piece, Packet& packet) {
  const auto refuse = [&](Unused why) {
    return reject(LastHeader::Kind::ether_type, type_ipv6, why);
  };
  if (!piece.has(40)) return refuse(Unused::cut_short);
  if (piece.at[0] >> 4 != 6) return refuse(Unused::bad_header);
  std::uint32_t bytes = big_endian_16(piece.at + 4);
  if (bytes == 0) {
    if (piece.length < 40) return refuse(Unused::bad_header);
    bytes = piece.length - 40;
  }
  packet.ip_bytes = bytes + 40;
  packet.identification = 0;
  packet.hops = piece.at[7];
  std::memcpy(packet.endpoints.source.data(), piece.at + 8, 16);
  std::memcpy(packet.endpoints.destination.data(), piece.at + 24, 16);
  std::uint8_t next = piece.at[6];
  Piece inside{piece.at + 40, piece.end, bytes};
  while (true) {
    std::uint32_t header = 0;
    switch (next) {
      case 0:    // hop by hop
      case 43:   // routing
      case 60:   // destination options
      case 135:  // mobility
      case 139:  // host identity
      case 140:  // shim6
        if (!inside.has(8)) return refuse(Unused::cut_short);
        header = (inside.at[1] + 1U) * 8;
        break;
      case 44: {  // fragment
        if (!inside.has(8)) return refuse(Unused::cut_short);
        const std::uint16_t offset_and_flags = big_endian_16(inside.at + 2);
        if ((offset_and_flags & 0xfff9) != 0) {
          if (inside.length < 8) return refuse(Unused::bad_header);
          const Fragment current{big_endian_32(inside.at + 4), offset_and_flags & 0xfff8U,
                                 (offset_and_flags & 1) != 0};
          const std::uint8_t protocol = inside.at[0];
          inside.skip(8);
          return decode_fragment(current, protocol, 6, inside, packet);
        }
        header = 8;
        break;
      }
      case 51:  // authentication
        if (!inside.has(8)) return refuse(Unused::cut_short);
        header = (inside.at[1] + 2U) * 4;
        break;
      default:
        return decode_transport(next, 6, inside, packet);
    }
    if (header > inside.length) return refuse(Unused::bad_header);
    if (!inside.has(header)) return refuse(Unused::cut_short);
    next = inside.at[0];
    inside.skip(header);
  }
}

/// Decode a fragment of an IP datagram; `inside` is its payload. Return Unused::none for the
/// fragment by which the datagram counts: see the top of decode.hpp.
Unused Decoder::decode_fragment(const Fragment& fragment, std::uint8_t protocol,
                                std::uint8_t version, const Piece& inside, Packet& packet) {
  constexpr std::uint32_t longest_datagram = 65'535;
  last_header_ = {LastHeader::Kind::ip_protocol, protocol};
  const bool is_first = fragment.offset == 0;
  const std::uint32_t header_bytes = packet.ip_bytes - inside.length;
  if (protocol == protocol_udp && is_first) {
    const Unused unused = decode_udp(inside.at, inside.end, longest_datagram, version, packet);
    if (unused == Unused::none) packet.ip_bytes = header_bytes + 8 + packet.payload;
    return unused;
  }
  if (protocol != protocol_tcp || (!is_first && fragment.more)) return Unused::fragment;
  if (is_first) {
    const Unused unused = decode_tcp(inside.at, inside.end, inside.length, version, packet);
    if (unused != Unused::none) return unused;
  }
  Endpoints endpoints = packet.endpoints;
  endpoints.set_rest(0, protocol, version);
  Fragmented* datagram = nullptr;
  for (Fragmented& each : fragmented_) {
    if (each.identification == fragment.identification && each.endpoints == endpoints)
      datagram = &each;
  }
  if (datagram == nullptr) {
    if (fragmented_.size() < max_fragmented) {
      datagram = &fragmented_.emplace_back();
    } else {
      datagram = &fragmented_[oldest_fragmented_];
      oldest_fragmented_ = (oldest_fragmented_ + 1) % max_fragmented;
    }
    *datagram = Fragmented{};
    datagram->endpoints = endpoints;
    datagram->identification = fragment.identification;
  }
  const std::int64_t now = packet.time_ns;
  if (is_first) {
    datagram->has_first = true;
    datagram->packet = packet;
    datagram->packet.ip_bytes = header_bytes;
    datagram->packet.payload =
        inside.length - packet.payload;  // the length of the TCP header until all is known
  } else {
    datagram->total = fragment.offset + inside.length;
  }
  if (!datagram->has_first || datagram->total == 0) return Unused::fragment;
  packet = datagram->packet;
  const std::uint32_t total = datagram->total;
  *datagram = Fragmented{};
  if (total < packet.payload) return Unused::bad_header;
  packet.time_ns = now;
  packet.ip_bytes += total;
  packet.payload = total - packet.payload;
  return Unused::none;
}

Unused Decoder::decode_other_protocol(std::uint8_t protocol, Piece inside, Packet& packet) {
  if (tunnels_ && ++depth_ <= max_depth) {
    if (protocol == 4) return decode_ipv4(inside, packet);
    if (protocol == 41) return decode_ipv6(inside, packet);
    if (protocol == 47) return decode_gre(inside, packet);
  }
  return reject(LastHeader::Kind::ip_protocol, protocol, Unused::not_tcp_or_udp);
}

Unused Decoder::decode_gre(Piece piece, Packet& packet) {
  const auto refuse = [&](Unused why) { return reject(LastHeader::Kind::ip_protocol, 47, why); };
  if (!piece.has(4)) return refuse(Unused::cut_short);
  const std::uint8_t flags = piece.at[0];
  const std::uint8_t more = piece.at[1];
  const std::uint16_t type = big_endian_16(piece.at + 2);
  if ((flags & 0x40) != 0) return refuse(Unused::not_tcp_or_udp);  // source routes (RFC 1701)
  std::uint32_t header = 4;
  for (const int is_present : {flags & 0x80, flags & 0x20, flags & 0x10, more & 0x80}) {
    if (is_present != 0) header += 4;  // checksum, key, sequence, acknowledgement
  }
  if (!piece.has(header)) return refuse(Unused::cut_short);
  piece.skip(header);
  if (type == 0x88be) {  // ERSPAN: type 2 has a header of 8 bytes, type 1 has none
    if ((flags & 0x10) == 0) return decode_ethernet(piece, packet);
    if (!piece.has(8)) return refuse(Unused::cut_short);
    piece.skip(8);
    return decode_ethernet(piece, packet);
  }
  return decode_network(type, piece, packet);
}

/// Decode the packet within a UDP tunnel. If there is none, return false and leave `packet` as it
/// was.
bool Decoder::decode_tunnel_in_udp(Piece payload, Packet& packet) {
  const std::uint16_t port = __builtin_bswap16(packet.endpoints.destination_port());
  if (++depth_ > max_depth || !payload.has(8)) return false;
  const Packet outer = packet;
  const LastHeader last_header = last_header_;
  const std::uint8_t* at = payload.at;
  Unused unused = Unused::not_ip;
  if (port == 4789 || port == 8472) {  // VXLAN; Linux's former port
    if ((at[0] & 0x08) == 0) return false;
    payload.skip(8);
    unused = decode_ethernet(payload, packet);
  } else if (port == 6081) {  // Geneve
    const std::uint32_t header = 8 + (at[0] & 0x3fU) * 4;
    if (at[0] >> 6 != 0 || !payload.has(header)) return false;
    payload.skip(header);
    unused = decode_network(big_endian_16(at + 2), payload, packet);
  } else if (port == 2152) {  // GTP-U
    if (at[0] >> 4 != 3 || at[1] != 0xff) return false;
    std::uint32_t header = 8;
    if ((at[0] & 7) != 0) {
      header += 4;
      if (!payload.has(header)) return false;
      std::uint8_t next = (at[0] & 4) != 0 ? at[11] : 0;
      while (next != 0) {  // extension headers
        if (!payload.has(header + 1) || at[header] == 0) return false;
        header += at[header] * 4U;
        if (!payload.has(header)) return false;
        next = at[header - 1];
      }
    }
    payload.skip(header);
    unused = decode_ip(payload, packet);
  }
  if (unused == Unused::none) return true;
  packet = outer;
  last_header_ = last_header;
  return false;
}

}  // namespace nagi::captures
