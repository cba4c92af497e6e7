// SPDX-License-Identifier: Apache-2.0
#include "native/decode.hpp"

#include <gtest/gtest.h>

#include "made.hpp"

namespace nagi::captures {
namespace {

using namespace made;

struct Decoded {
  Unused unused;
  Packet packet;
  std::string what;
};

Decoded decoded(const Bytes& bytes, std::uint32_t link_type = 1, std::uint32_t length = 0,
                Decoder decoder = Decoder()) {
  Record record;
  record.data = bytes.data();
  record.captured = static_cast<std::uint32_t>(bytes.size());
  record.length = length != 0 ? length : record.captured;
  record.link_type = link_type;
  Decoded result;
  result.unused = decoder.decode(record, result.packet);
  result.what = protocol_name(decoder.last_header());
  return result;
}

Bytes ipv6(const Bytes& inside, std::uint8_t next = 6, int length = -1) {
  Writer out(true);
  out.put<std::uint32_t>(0x60000000);
  out.put<std::uint16_t>(
      static_cast<std::uint16_t>(length >= 0 ? length : static_cast<int>(inside.size())));
  out.put(next).put<std::uint8_t>(64).put(Bytes(16, 1)).put(Bytes(16, 2));
  return out.put(inside).bytes;
}

const Segment segment{.sequence = 7, .acknowledgement = 9, .payload = 100};

void expect_segment(const Decoded& seen) {
  EXPECT_EQ(seen.unused, Unused::none);
  EXPECT_EQ(seen.packet.sequence, 7);
  EXPECT_EQ(seen.packet.acknowledgement, 9);
  EXPECT_EQ(seen.packet.payload, 100);
  EXPECT_EQ(seen.packet.window, 1000);
}

TEST(Links, AllKindsOfThem) {
  const Bytes ip = ipv4(tcp(segment));
  const Bytes ip6 = ipv6(tcp(segment));
  expect_segment(decoded(ethernet(ip)));
  expect_segment(decoded(ethernet(ip6, 0x86dd)));
  const Bytes tag{0x00, 0x05, 0x08, 0x00};
  expect_segment(decoded(ethernet(tag + ip, 0x8100)));
  expect_segment(decoded(ethernet(Bytes{0, 1, 0x81, 0x00} + tag + ip, 0x88a8)));
  expect_segment(decoded(Bytes(14) + Bytes{0x08, 0x00} + ip, 113));
  expect_segment(decoded(Bytes(14) + Bytes{0x81, 0x00} + tag + ip, 113));
  expect_segment(decoded(Bytes{0x86, 0xdd} + Bytes(18) + ip6, 276));
  for (const std::uint32_t type : {12, 14, 101}) {
    expect_segment(decoded(ip, type));
    expect_segment(decoded(ip6, type));
  }
  expect_segment(decoded(ip, 228));
  expect_segment(decoded(ip6, 229));
  expect_segment(decoded(Bytes{2, 0, 0, 0} + ip, 0));
  expect_segment(decoded(Bytes{0, 0, 0, 30} + ip6, 0));
  expect_segment(decoded(Bytes{0, 0, 0, 24} + ip6, 108));
  EXPECT_EQ(decoded(ip, 147).unused, Unused::link_type);
}

TEST(Links, FramesWithinFrames) {
  const Bytes ip = ipv4(tcp(segment));
  const Bytes ip6 = ipv6(tcp(segment));
  const Bytes pppoe = Bytes{0x11, 0, 0, 1, 0, 0};
  expect_segment(decoded(ethernet(pppoe + Bytes{0x00, 0x21} + ip, 0x8864)));
  expect_segment(decoded(ethernet(pppoe + Bytes{0x00, 0x57} + ip6, 0x8864)));
  expect_segment(decoded(pppoe + Bytes{0x21} + ip, 51));
  expect_segment(decoded(Bytes{0xff, 3, 0, 0x21} + ip, 9));
  expect_segment(decoded(Bytes{0, 0xff, 3, 0, 0x21} + ip, 204));
  expect_segment(decoded(Bytes{0x0f, 0, 8, 0} + ip, 104));
  expect_segment(decoded(Bytes{0x8f, 0, 8, 0} + ip, 50));
  const Bytes labels = Bytes{0, 1, 0x00, 64} + Bytes{0, 2, 0x01, 64};
  expect_segment(decoded(ethernet(labels + ip, 0x8847)));
  expect_segment(decoded(ethernet(labels + ip6, 0x8848)));
  expect_segment(decoded(ethernet(labels + Bytes(4) + ethernet(ip), 0x8847)));
  expect_segment(decoded(labels + ip, 219));
  expect_segment(decoded(ethernet(Bytes(4) + ethernet(ip), 0x88e7)));  // 802.1ah
  const Bytes snap{0xaa, 0xaa, 3, 0, 0, 0, 8, 0};
  expect_segment(decoded(ethernet(snap + ip, 148)));
  expect_segment(decoded(ethernet(Bytes{0, 5, 0, 148} + snap + ip, 0x8100)));
  expect_segment(decoded(ethernet(Bytes{6, 6, 3} + ip, 143)));
  expect_segment(decoded(Bytes(14) + Bytes{0, 4} + snap + ip, 113));
  expect_segment(decoded(snap + ip, 100));
}

TEST(Links, Wireless) {
  const Bytes snap{0xaa, 0xaa, 3, 0, 0, 0, 8, 0};
  const Bytes inside = snap + ipv4(tcp(segment));
  const auto header = [](std::uint8_t control, std::uint8_t flags, std::size_t rest) {
    return Bytes{control, flags} + Bytes(rest);
  };
  expect_segment(decoded(header(0x08, 1, 22) + inside, 105));
  expect_segment(decoded(header(0x88, 2, 24) + inside, 105));     // QoS
  expect_segment(decoded(header(0x88, 3, 30) + inside, 105));     // between distribution systems
  expect_segment(decoded(header(0x88, 0x82, 28) + inside, 105));  // HT control
  const Bytes several = header(0x88, 2, 22) + Bytes{0x80, 0};
  expect_segment(decoded(several + Bytes(14) + inside, 105));
  const Bytes plain = Bytes{0, 0, 8, 0, 0, 0, 0, 0};
  expect_segment(decoded(plain + header(0x08, 1, 22) + inside, 127));
  // A time, then flags that say the header is padded; behind two words of what is there.
  const Bytes padded =
      Bytes{0, 0, 25, 0, 3, 0, 0, 0x80, 0, 0, 0, 0} + Bytes(4) + Bytes(8) + Bytes{0x20};
  expect_segment(decoded(padded + header(0x88, 2, 24) + Bytes(2) + inside, 127));
  EXPECT_EQ(decoded(header(0x08, 0x41, 22) + inside, 105).what, "802.11 encrypted");
  EXPECT_EQ(decoded(plain + header(0x80, 0, 22) + inside, 127).what, "802.11 management");
  const Bytes ip = ipv4(tcp(segment));
  const auto length = static_cast<std::uint8_t>(ip.size() + 4);
  const Bytes nflog = Bytes{2, 0, 0, 0} + Bytes{6, 0, 10, 0, 'x', 0, 0, 0} + Bytes{length, 0, 9, 0};
  expect_segment(decoded(nflog + ip, 239));
}

TEST(Fragments, CountOnceAndWhole) {
  const auto part = [](const Bytes& whole, std::size_t from, std::size_t to,
                       std::uint8_t protocol) {
    const auto begin = whole.begin();
    const Bytes bytes(begin + static_cast<std::ptrdiff_t>(from),
                      begin + static_cast<std::ptrdiff_t>(to));
    const auto place = static_cast<std::uint16_t>(from / 8 | (to < whole.size() ? 0x2000 : 0));
    return ethernet(ipv4(bytes, false, protocol, {}, place));
  };
  const auto given = [](Decoder& decoder, const Bytes& bytes) {
    Record record;
    record.data = bytes.data();
    record.captured = record.length = static_cast<std::uint32_t>(bytes.size());
    record.link_type = 1;
    Decoded result;
    result.unused = decoder.decode(record, result.packet);
    return result;
  };
  Decoder decoder;
  Writer header(true);
  header.put<std::uint16_t>(1).put<std::uint16_t>(2).put<std::uint16_t>(4008).put<std::uint16_t>(3);
  const Bytes datagram = header.bytes + Bytes(4000);
  const Decoded first = given(decoder, part(datagram, 0, 1480, 17));
  EXPECT_EQ(first.unused, Unused::none);
  EXPECT_EQ(first.packet.payload, 4000);
  EXPECT_EQ(first.packet.ip_bytes, 4028);
  EXPECT_EQ(given(decoder, part(datagram, 1480, 2960, 17)).unused, Unused::fragment);
  EXPECT_EQ(given(decoder, part(datagram, 2960, 4008, 17)).unused, Unused::fragment);
  const Bytes whole = tcp({.sequence = 7, .acknowledgement = 9, .payload = 100});
  for (const bool in_order : {true, false}) {
    Decoded seen = given(decoder, in_order ? part(whole, 0, 48, 6) : part(whole, 96, 120, 6));
    EXPECT_EQ(seen.unused, Unused::fragment);
    EXPECT_EQ(given(decoder, part(whole, 48, 96, 6)).unused, Unused::fragment);
    seen = given(decoder, in_order ? part(whole, 96, 120, 6) : part(whole, 0, 48, 6));
    expect_segment(seen);
    EXPECT_EQ(seen.packet.ip_bytes, 140);
  }
  const Bytes six =
      Bytes{17, 0, 0, 1, 0, 0, 0, 5} + Bytes(datagram.begin(), datagram.begin() + 800);
  EXPECT_EQ(decoded(ipv6(six, 44), 101).packet.payload, 4000);
}

TEST(Tunnels, AreReadOnRequest) {
  const Bytes ip = ipv4(tcp(segment));
  const auto udp_to = [](std::uint16_t port, const Bytes& inside) {
    Writer out(true);
    out.put<std::uint16_t>(1000).put(port);
    out.put(static_cast<std::uint16_t>(8 + inside.size())).put<std::uint16_t>(0);
    return ethernet(ipv4(out.put(inside).bytes, false, 17));
  };
  const Bytes vxlan{8, 0, 0, 0, 0, 0, 1, 0};
  const auto gtp = [&](std::uint8_t flags) { return Bytes{flags, 0xff, 0, 0, 0, 0, 0, 1}; };
  const std::vector<Bytes> all = {
      ethernet(ipv4(Bytes{0, 0, 8, 0} + ip, false, 47)),
      ethernet(ipv4(Bytes{0xb0, 0, 0x65, 0x58} + Bytes(12) + ethernet(ip), false, 47)),
      ethernet(ipv4(Bytes{0x30, 0x81, 0x88, 0x0b} + Bytes(12) + Bytes{0xff, 3, 0, 0x21} + ip, false,
                    47)),
      ethernet(ipv4(Bytes{0x10, 0, 0x88, 0xbe} + Bytes(12) + ethernet(ip), false, 47)),
      ethernet(ipv4(ip, true, 4)),
      ethernet(ipv4(ipv6(tcp(segment)), true, 41)),
      udp_to(4789, vxlan + ethernet(ip)),
      udp_to(6081, Bytes{1, 0, 0x65, 0x58, 0, 0, 0, 0} + Bytes(4) + ethernet(ip)),
      udp_to(2152, gtp(0x30) + ip),
      udp_to(2152, gtp(0x34) + Bytes{0, 0, 0, 0x85} + Bytes{1, 0, 0, 0} + ip),
  };
  for (const Bytes& each : all) {
    const Decoded inner = decoded(each, 1, 0, Decoder(true));
    expect_segment(inner);
    EXPECT_EQ(inner.packet.endpoints.protocol(), protocol_tcp);
    const Decoded outer = decoded(each);
    EXPECT_NE(outer.packet.endpoints.protocol(), protocol_tcp);
  }
  EXPECT_EQ(decoded(all[0]).what, "GRE");
  EXPECT_EQ(decoded(all[0]).unused, Unused::not_tcp_or_udp);
  // If the inner packet is neither TCP nor UDP, the outer one counts.
  const Bytes arp = udp_to(4789, vxlan + ethernet(Bytes(28), 0x0806));
  EXPECT_EQ(decoded(arp, 1, 0, Decoder(true)).packet.endpoints.protocol(), protocol_udp);
  Bytes deep = ip;
  for (int i = 0; i < 50; ++i) deep = ipv4(deep, false, 4);
  EXPECT_EQ(decoded(deep, 101, 0, Decoder(true)).unused, Unused::not_tcp_or_udp);
}

TEST(Names, SayWhatAPacketIs) {
  EXPECT_EQ(decoded(ethernet(Bytes(28), 0x0806)).what, "ARP");
  EXPECT_EQ(decoded(ethernet(Bytes{0x11, 9, 0, 0, 0, 0}, 0x8863)).what, "PPPoE discovery");
  EXPECT_EQ(decoded(ethernet(Bytes{0x11, 0, 0, 1, 0, 0, 0xc0, 0x21}, 0x8864)).what, "PPP LCP");
  EXPECT_EQ(decoded(ethernet(Bytes{0x42, 0x42, 3, 0}, 38)).what, "STP");
  EXPECT_EQ(decoded(ethernet(ipv4(Bytes(30), false, 1))).what, "ICMP");
  EXPECT_EQ(decoded(ethernet(Bytes(28), 0x4321)).what, "Ethernet type 0x4321");
  EXPECT_EQ(decoded(Bytes(28), 187).what, "Bluetooth HCI frames");
  EXPECT_EQ(link_type_name(147), "private use (USER0)");
}

TEST(Lengths, ComeFromTheIpHeader) {
  const Bytes whole = frame(segment);
  EXPECT_EQ(decoded(whole + Bytes(6)).packet.payload, 100);  // padding
  const Bytes cut(whole.begin(), whole.begin() + 54);
  EXPECT_EQ(decoded(cut, 1, 154).packet.payload, 100);
  EXPECT_EQ(decoded(cut, 1, 154).packet.ip_bytes, 140);
  EXPECT_EQ(decoded(Bytes(cut.begin(), cut.end() - 1), 1, 154).unused, Unused::cut_short);
  // Without a length, as the network card has yet to split the segment, the frame's length counts.
  const Bytes large = ethernet(ipv4(tcp(segment), false, 6, {}, 0, 0));
  EXPECT_EQ(decoded(large).packet.payload, 100);
  EXPECT_EQ(decoded(ethernet(ipv6(tcp(segment), 6, 0), 0x86dd)).packet.payload, 100);
}

TEST(Headers, OptionsOfIpAndTcp) {
  Segment all = segment;
  all.options = Bytes{2, 4, 5, 0xb4, 4, 2} + Bytes{3, 3, 7} + Bytes{1, 1, 1} + stamps(11, 22);
  Decoded seen = decoded(ethernet(ipv4(tcp(all), false, 6, Bytes(8, 1))));
  expect_segment(seen);
  EXPECT_EQ(seen.packet.mss, 1460);
  EXPECT_EQ(seen.packet.window_scale, 7);
  EXPECT_TRUE(seen.packet.sack_permitted);
  EXPECT_EQ(seen.packet.tsval, 11);
  EXPECT_EQ(seen.packet.tsecr, 22);
  all.options = stamps(33, 44);
  EXPECT_EQ(decoded(frame(all)).packet.tsecr, 44);
  all.options = Bytes{1, 1, 5, 18} + Bytes(16);
  EXPECT_EQ(decoded(frame(all)).packet.sack_blocks, 2);
  EXPECT_FALSE(decoded(frame(all)).packet.has_timestamps);
  all.options = Bytes{8, 20, 0, 0};  // longer than the header
  expect_segment(decoded(frame(all)));
}

TEST(Headers, Ipv6Extensions) {
  const Bytes inside = tcp(segment);
  const Bytes hop = Bytes{44, 0} + Bytes(6);
  const Bytes only_fragment = Bytes{51, 0, 0, 0} + Bytes(4);
  const Bytes authentication = Bytes{6, 4} + Bytes(22);
  expect_segment(decoded(ipv6(hop + only_fragment + authentication + inside, 0), 101));
  const Bytes later = Bytes{6, 0, 0, 8} + Bytes(4);
  EXPECT_EQ(decoded(ipv6(later + inside, 44), 101).unused, Unused::fragment);
  EXPECT_EQ(decoded(ipv6(Bytes{6, 200} + Bytes(6) + inside, 60), 101).unused, Unused::bad_header);
  EXPECT_EQ(decoded(ipv6(inside, 50), 101).unused, Unused::not_tcp_or_udp);
}

TEST(Udp, HasPayload) {
  const Bytes datagram = Writer(true)
                             .put<std::uint16_t>(1)
                             .put<std::uint16_t>(2)
                             .put<std::uint16_t>(58)
                             .put<std::uint16_t>(3)
                             .put(Bytes(50))
                             .bytes;
  const Decoded seen = decoded(ethernet(ipv4(datagram, false, 17)));
  EXPECT_EQ(seen.unused, Unused::none);
  EXPECT_EQ(seen.packet.payload, 50);
  EXPECT_EQ(seen.packet.checksum, 3);
}

TEST(Unusable, IsSaidWhy) {
  EXPECT_EQ(decoded(ethernet(Bytes(28), 0x0806)).unused, Unused::not_ip);
  EXPECT_EQ(decoded(Bytes(10)).unused, Unused::cut_short);
  EXPECT_EQ(decoded(ethernet(Bytes(10))).unused, Unused::cut_short);
  EXPECT_EQ(decoded(ethernet(Bytes(40))).unused, Unused::bad_header);
  EXPECT_EQ(decoded(ethernet(ipv4(Bytes(30), false, 1))).unused, Unused::not_tcp_or_udp);
  EXPECT_EQ(decoded(ethernet(ipv4(tcp(segment), false, 6, {}, 100))).unused, Unused::fragment);
  EXPECT_EQ(decoded(ethernet(ipv4(Bytes(10)))).unused, Unused::bad_header);
  EXPECT_EQ(decoded(ethernet(ipv4(Bytes(30)))).unused, Unused::bad_header);
  EXPECT_EQ(decoded({}, 101).unused, Unused::cut_short);
}

TEST(Unusable, EveryCutAndEveryByteIsSurvived) {
  Segment all = segment;
  all.options = stamps(1, 2) + Bytes{1, 1, 5, 10} + Bytes(8);
  const Bytes whole = ethernet(Bytes{0, 1, 0x08, 0x00} + ipv4(tcp(all)), 0x8100);
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    decoded(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)), 1, 200);
  }
  for (std::size_t at = 0; at < 90; ++at) {
    for (int value = 0; value < 256; ++value) {
      Bytes other = whole;
      other[at] = static_cast<std::uint8_t>(value);
      decoded(other);
    }
  }
}

}  // namespace
}  // namespace nagi::captures
