// SPDX-License-Identifier: Apache-2.0
//
// Finds the IP packet in a frame. https://www.tcpdump.org/linktypes.html lists the link types and
// their numbers. These are decoded: Ethernet, Linux cooked (SLL, SLL2), raw IP, BSD loopback, PPP
// (RFC 1661, 1662), PPPoE (RFC 2516), Cisco HDLC, 802.11 alone or behind radiotap, Prism, AVS and
// PPI headers, NFLOG, MPLS, RFC 1483. Within these: VLAN tags (IEEE 802.1Q, 802.1ad), provider
// backbone bridges (802.1ah), MPLS (RFC 3032), LLC and SNAP (IEEE 802.2, RFC 1042), PPPoE.
#include "native/decode.hpp"

namespace nagi::captures {

using namespace decoding;

namespace {

std::uint32_t little_endian_16(const std::uint8_t* at) { return at[0] | at[1] << 8U; }

constexpr std::uint32_t longest_802_3 = 1500;  // larger values are Ethernet types

}  // namespace

Unused Decoder::decode_link(std::uint32_t link_type, Piece frame, Packet& packet) {
  // Skip a header of `bytes` bytes, then call `next`.
  const auto behind = [&](std::uint32_t bytes, auto next) {
    if (!frame.has(bytes)) return Unused::cut_short;
    frame.skip(bytes);
    return next();
  };
  switch (link_type) {
    case 1:
      return decode_ethernet(frame, packet);
    case 0:
    case 108: {
      if (!frame.has(4)) return Unused::cut_short;
      // The address family is a small number in the byte order of the capturing host.
      std::uint32_t family = big_endian_32(frame.at);
      if (family > 0xffff) family = __builtin_bswap32(family);
      const bool is_ip =
          family == 2 || family == 10 || family == 24 || family == 28 || family == 30;
      if (!is_ip) return Unused::not_ip;
      return behind(4, [&] { return decode_ip(frame, packet); });
    }
    case 9:
    case 50:
      if (frame.has(2) && (frame.at[0] == 0x0f || frame.at[0] == 0x8f))
        return decode_hdlc(frame, packet);
      return decode_ppp(frame, packet);
    case 166:
    case 204:  // preceded by a byte with the direction
      return behind(1, [&] { return decode_ppp(frame, packet); });
    case 51:
      return decode_network(0x8864, frame, packet);
    case 104:
      return decode_hdlc(frame, packet);
    case 11:
    case 100:
      return decode_llc(frame, packet);
    case 12:
    case 14:
    case 101:
    case 228:
    case 229:
      return decode_ip(frame, packet);
    case 105:
      return decode_wifi(frame, false, packet);
    case 119:  // Prism
      return behind(144, [&] { return decode_wifi(frame, false, packet); });
    case 127:
      return decode_radiotap(frame, packet);
    case 163:  // AVS
      if (!frame.has(8)) return Unused::cut_short;
      return behind(big_endian_32(frame.at + 4), [&] { return decode_wifi(frame, false, packet); });
    case 192:
      return decode_ppi(frame, packet);
    case 113: {
      if (!frame.has(16)) return Unused::cut_short;
      const std::uint16_t type = big_endian_16(frame.at + 14);
      return behind(16, [&] {
        return type == 4 ? decode_llc(frame, packet) : decode_network(type, frame, packet);
      });
    }
    case 276: {
      if (!frame.has(20)) return Unused::cut_short;
      const std::uint16_t type = big_endian_16(frame.at);
      return behind(20, [&] {
        return type == 4 ? decode_llc(frame, packet) : decode_network(type, frame, packet);
      });
    }
    case 138:  // IP over IEEE 1394
      if (!frame.has(18)) return Unused::cut_short;
      return decode_network(big_endian_16(frame.at + 16),
                            {frame.at + 18, frame.end, frame.length - 18}, packet);
    case 219:
      return decode_mpls(frame, packet);
    case 239:
      return decode_nflog(frame, packet);
    default:
      return Unused::link_type;
  }
}

Unused Decoder::decode_ethernet(Piece frame, Packet& packet) {
  if (!frame.has(14)) return Unused::cut_short;
  const std::uint16_t type = big_endian_16(frame.at + 12);
  frame.skip(14);
  return type <= longest_802_3 ? decode_llc(frame, packet) : decode_network(type, frame, packet);
}

/// Decode the packet or frame that follows an Ethernet type.
Unused Decoder::decode_network(std::uint32_t type, Piece piece, Packet& packet) {
  while (type == 0x8100 || type == 0x88a8 || type == 0x9100) {
    if (!piece.has(4)) return reject(LastHeader::Kind::ether_type, type, Unused::cut_short);
    type = big_endian_16(piece.at + 2);
    piece.skip(4);
    if (type <= longest_802_3) return decode_llc(piece, packet);
  }
  switch (type) {
    case type_ipv4:
      return decode_ipv4(piece, packet);
    case type_ipv6:
      return decode_ipv6(piece, packet);
    case 0x8847:
    case 0x8848:
      return decode_mpls(piece, packet);
    case 0x8864:  // PPPoE
      if (!piece.has(6)) return reject(LastHeader::Kind::ether_type, type, Unused::cut_short);
      if (piece.at[1] != 0) return reject(LastHeader::Kind::ether_type, 0x8863);
      piece.skip(6);
      return decode_ppp(piece, packet);
    case 0x88e7:  // 802.1ah: its tag, then a frame
      if (!piece.has(4)) return reject(LastHeader::Kind::ether_type, type, Unused::cut_short);
      piece.skip(4);
      [[fallthrough]];
    case 0x6558:  // a frame
      if (++depth_ > max_depth)
        return reject(LastHeader::Kind::ether_type, type, Unused::bad_header);
      return decode_ethernet(piece, packet);
    case 0x880b:
      return decode_ppp(piece, packet);
    default:
      return reject(LastHeader::Kind::ether_type, type);
  }
}

Unused Decoder::decode_llc(Piece piece, Packet& packet) {
  if (!piece.has(3)) return reject(LastHeader::Kind::llc, 0, Unused::cut_short);
  const std::uint16_t both = big_endian_16(piece.at);
  if (both == 0x0606 && piece.at[2] == 3) {
    piece.skip(3);
    return decode_ip(piece, packet);
  }
  if (both != 0xaaaa || piece.at[2] != 3) return reject(LastHeader::Kind::llc, both);
  if (!piece.has(8)) return reject(LastHeader::Kind::llc, both, Unused::cut_short);
  const std::uint32_t organisation = big_endian_32(piece.at + 2) & 0xffffff;
  const std::uint16_t type = big_endian_16(piece.at + 6);
  piece.skip(8);
  // The organisations 0 and 0xf8 (bridge tunnel of IEEE 802.1H) use Ethernet types.
  if (organisation == 0 || organisation == 0xf8) return decode_network(type, piece, packet);
  if (organisation == 0x80c2 && (type == 1 || type == 7)) {  // RFC 2684: a bridged frame
    if (!piece.has(2)) return reject(LastHeader::Kind::llc, both, Unused::cut_short);
    piece.skip(2);
    return decode_ethernet(piece, packet);
  }
  return reject(LastHeader::Kind::llc, both);
}

Unused Decoder::decode_ppp(Piece piece, Packet& packet) {
  if (piece.has(2) && piece.at[0] == 0xff && piece.at[1] == 3) piece.skip(2);
  if (!piece.has(2)) return reject(LastHeader::Kind::ppp, 0, Unused::cut_short);
  const bool is_short = (piece.at[0] & 1) != 0;
  const std::uint32_t protocol = is_short ? piece.at[0] : big_endian_16(piece.at);
  piece.skip(is_short ? 1 : 2);
  switch (protocol) {
    case 0x21:
      return decode_ipv4(piece, packet);
    case 0x57:
      return decode_ipv6(piece, packet);
    case 0x281:
    case 0x283:
      return decode_mpls(piece, packet);
    default:
      return reject(LastHeader::Kind::ppp, protocol);
  }
}

Unused Decoder::decode_hdlc(Piece piece, Packet& packet) {
  if (!piece.has(4)) return Unused::cut_short;
  const std::uint16_t type = big_endian_16(piece.at + 2);
  piece.skip(4);
  return decode_network(type, piece, packet);
}

Unused Decoder::decode_mpls(Piece piece, Packet& packet) {
  bool bottom = false;
  while (!bottom) {
    if (!piece.has(5)) return reject(LastHeader::Kind::ether_type, 0x8847, Unused::cut_short);
    bottom = (piece.at[2] & 1) != 0;
    piece.skip(4);
  }
  const int first = piece.at[0] >> 4;
  if (first == 4 || first == 6) return decode_ip(piece, packet);
  // RFC 4448: a control word of 4 bytes, then a frame
  if (first == 0 && piece.has(4) && ++depth_ <= max_depth) {
    piece.skip(4);
    return decode_ethernet(piece, packet);
  }
  return reject(LastHeader::Kind::ether_type, 0x8847);
}

Unused Decoder::decode_ip(Piece piece, Packet& packet) {
  if (!piece.has(1)) return Unused::cut_short;
  const int version = piece.at[0] >> 4;
  if (version == 4) return decode_ipv4(piece, packet);
  return version == 6 ? decode_ipv6(piece, packet) : Unused::not_ip;
}

Unused Decoder::decode_radiotap(Piece piece, Packet& packet) {
  if (!piece.has(8)) return Unused::cut_short;
  const std::uint32_t length = little_endian_16(piece.at + 2);
  if (length < 8) return Unused::bad_header;
  if (!piece.has(length)) return Unused::cut_short;
  // The flags, if present, follow all words of the presence mask and a time of 8 bytes.
  std::uint32_t at = 4;
  while (at + 4 <= length && (piece.at[at + 3] & 0x80) != 0) at += 4;
  at += 4;
  const std::uint8_t present = piece.at[4];
  if ((present & 1) != 0) at = (at + 7) / 8 * 8 + 8;
  const std::uint8_t flags = (present & 2) != 0 && at < length ? piece.at[at] : 0;
  if ((flags & 0x40) != 0) return reject(LastHeader::Kind::wifi, 2, Unused::failed_check);
  piece.skip(length);
  return decode_wifi(piece, (flags & 0x20) != 0, packet);
}

/// Decode Per-Packet Information: fields with a type and a length, then a frame of any link type.
Unused Decoder::decode_ppi(Piece piece, Packet& packet) {
  constexpr std::uint32_t common_802_11 = 2;
  if (!piece.has(8)) return Unused::cut_short;
  const std::uint32_t length = little_endian_16(piece.at + 2);
  const std::uint32_t inner = little_endian_16(piece.at + 4);
  if (inner == 192 || length < 8 || ++depth_ > max_depth) return Unused::bad_header;
  if (!piece.has(length)) return Unused::cut_short;
  for (std::uint32_t at = 8; at + 4 <= length;) {
    const std::uint32_t type = little_endian_16(piece.at + at);
    const std::uint32_t bytes = little_endian_16(piece.at + at + 2);
    at += 4;
    // Flags follow a time of 8 bytes. Two of them report a wrong FCS and an error of the PHY.
    if (type == common_802_11 && bytes >= 10 && at + 10 <= length &&
        (little_endian_16(piece.at + at + 8) & 0xc) != 0) {
      return reject(LastHeader::Kind::wifi, 2, Unused::failed_check);
    }
    at += bytes;
  }
  piece.skip(length);
  return decode_link(inner, piece, packet);
}

/// Decode a frame of IEEE 802.11. If it has several packets (A-MSDU), only the first is decoded.
/// `padded`: the header is padded to a multiple of 4 bytes.
Unused Decoder::decode_wifi(Piece piece, bool padded, Packet& packet) {
  if (!piece.has(2)) return reject(LastHeader::Kind::wifi, 3, Unused::cut_short);
  const std::uint8_t control = piece.at[0];
  const std::uint8_t flags = piece.at[1];
  const unsigned type = control >> 2 & 3;
  if (type != 2) return reject(LastHeader::Kind::wifi, type);
  if ((control & 0x40) != 0) return reject(LastHeader::Kind::wifi, 5);  // a frame without data
  if ((flags & 0x40) != 0) return reject(LastHeader::Kind::wifi, 4);
  const bool quality = (control & 0x80) != 0;
  std::uint32_t header = 24;
  if ((flags & 3) == 3) header += 6;
  const std::uint32_t quality_at = header;
  if (quality) header += (flags & 0x80) != 0 ? 6 : 2;
  if (!piece.has(header + 8)) return reject(LastHeader::Kind::wifi, type, Unused::cut_short);
  const bool several = quality && (piece.at[quality_at] & 0x80) != 0;
  if ((little_endian_16(piece.at + 22) & 15) != 0) {  // a fragment other than the first
    return reject(LastHeader::Kind::wifi, type, Unused::fragment);
  }
  if (padded) header = (header + 3) / 4 * 4;
  if (several) header += 14;
  if (!piece.has(header)) return reject(LastHeader::Kind::wifi, type, Unused::cut_short);
  piece.skip(header);
  packet.resent_frame = (flags & 0x08) != 0;
  // In an A-MSDU, two addresses and the length precede each packet, and padding to a multiple of 4
  // bytes follows it.
  if (several && (big_endian_16(piece.at - 2) + 14U + 3) / 4 * 4 < piece.length + 14)
    ++frames_of_several_;
  return decode_llc(piece, packet);
}

Unused Decoder::decode_nflog(Piece piece, Packet& packet) {
  if (!piece.has(4)) return Unused::cut_short;
  piece.skip(4);
  while (piece.has(4)) {
    const std::uint32_t length = little_endian_16(piece.at);
    if (length < 4) return Unused::bad_header;
    if (little_endian_16(piece.at + 2) == 9) {  // the element that holds the packet
      piece.skip(4);
      piece.length = length - 4;
      return decode_ip(piece, packet);
    }
    const std::uint32_t whole = (length + 3) / 4 * 4;
    if (!piece.has(whole)) return Unused::cut_short;
    piece.skip(whole);
  }
  return Unused::not_ip;
}

}  // namespace nagi::captures
