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
};

Decoded decoded(const Bytes& bytes, std::uint32_t link_type = 1, std::uint32_t length = 0) {
  Record record;
  record.data = bytes.data();
  record.captured = static_cast<std::uint32_t>(bytes.size());
  record.length = length != 0 ? length : record.captured;
  record.link_type = link_type;
  Decoded result;
  result.unused = decode(record, result.packet);
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

TEST(Lengths, ComeFromTheIpHeader) {
  const Bytes whole = frame(segment);
  EXPECT_EQ(decoded(whole + Bytes(6)).packet.payload, 100);  // padding
  const Bytes cut(whole.begin(), whole.begin() + 54);
  EXPECT_EQ(decoded(cut, 1, 154).packet.payload, 100);
  EXPECT_EQ(decoded(cut, 1, 154).packet.ip_bytes, 140);
  EXPECT_EQ(decoded(Bytes(cut.begin(), cut.end() - 1), 1, 154).unused, Unused::cut_short);
  // No length yet, where the network card is to split it: the frame's.
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
  const Bytes first_fragment = Bytes{51, 0, 0, 1} + Bytes(4);
  const Bytes authentication = Bytes{6, 4} + Bytes(22);
  expect_segment(decoded(ipv6(hop + first_fragment + authentication + inside, 0), 101));
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
  EXPECT_EQ(decoded(ethernet(ipv4(tcp(segment), false, 6, {}, 0x2000))).unused, Unused::none);
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
