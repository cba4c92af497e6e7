// SPDX-License-Identifier: Apache-2.0
#include "io/ip_header.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace nagi::io {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes from_hex(const std::string& hex) {
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

FrameView view(Bytes& bytes) { return {bytes.data(), bytes.size()}; }

// Ethernet, IPv4 (identification 0x1234, ECT(0), header checksum right), UDP 9 -> 10, 4 bytes
// "nagi", checksums computed by hand.
const std::string ethernet = "0202020202020101010101010800";
const std::string ipv4 =
    "450200201234400040111495"
    "0a0000010a000002";
const std::string udp = "0009000a000c";

std::uint16_t header_sum(const Bytes& frame) {
  std::uint32_t sum = 0;
  for (std::size_t i = 14; i < 34; i += 2) {
    sum += static_cast<std::uint32_t>(frame[i] << 8 | frame[i + 1]);
  }
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

/// The frame with the UDP checksum `checksum`.
Bytes packet(const std::string& checksum) {
  return from_hex(ethernet + ipv4 + udp + checksum + "6e616769");
}

TEST(IpHeader, KnowsAPacketByIdentificationAndChecksum) {
  Bytes frame = packet("a1b2");
  EXPECT_EQ(IpHeader(view(frame)).identity(), 0x1234a1b2u);
  Bytes tagged = from_hex(
      "02020202020201010101010181000005"
      "0800" +
      ipv4 + udp + "a1b2");
  EXPECT_EQ(IpHeader(view(tagged)).identity(), 0x1234a1b2u);
}

TEST(IpHeader, MarksWhatIsCapable) {
  Bytes frame = packet("a1b2");
  ASSERT_EQ(header_sum(frame), 0xffff);  // the header's checksum is right
  EXPECT_TRUE(IpHeader(view(frame)).is_ecn_capable());
  IpHeader(view(frame)).mark();
  EXPECT_EQ(frame[15], 3);
  EXPECT_EQ(header_sum(frame), 0xffff);
  EXPECT_FALSE(IpHeader(view(frame)).is_ecn_capable());
  EXPECT_EQ(IpHeader(view(frame)).identity(), 0x1234a1b2u);
}

TEST(IpHeader, MarksIpv6) {
  // Traffic class 0x01: ECT(1).
  Bytes frame = from_hex(
      "02020202020201010101010186dd"
      "60100000000c1140" +
      std::string(64, '0') + udp +
      "a1b2"
      "6e616769");
  EXPECT_TRUE(IpHeader(view(frame)).is_ecn_capable());
  EXPECT_EQ(IpHeader(view(frame)).identity(), 0xa1b2u);
  IpHeader(view(frame)).mark();
  EXPECT_EQ(frame[15], 0x30);
}

TEST(IpHeader, TellsAChecksumLeftToHardware) {
  // Pseudo-header: 0a00 + 0001 + 0a00 + 0002 + 0011 + 000c = 1420. Payload: 0009 + 000a + 000c +
  // 6e61 + 6769 = d5e9. The right checksum is ~(1420 + d5e9) = ~ea09 = 15f6.
  Bytes left = packet("1420");
  EXPECT_TRUE(IpHeader(view(left)).lacks_checksum());
  Bytes right = packet("15f6");
  EXPECT_FALSE(IpHeader(view(right)).lacks_checksum());
  Bytes damaged = packet("15f7");  // on the way, not left out
  EXPECT_FALSE(IpHeader(view(damaged)).lacks_checksum());
  Bytes without = packet("0000");
  EXPECT_FALSE(IpHeader(view(without)).lacks_checksum());
}

TEST(IpHeader, LeavesEverythingElseAlone) {
  for (const std::string& hex :
       {std::string(), std::string("0202"), ethernet, ethernet + "45",
        std::string("02020202020201010101010108060001"), ethernet + "4f" + ipv4.substr(2),
        std::string("02020202020201010101010186dd60"),
        std::string("020202020202010101010101"
                    "8100")}) {
    Bytes frame = from_hex(hex);
    const Bytes before = frame;
    IpHeader header(view(frame));
    EXPECT_FALSE(header.is_ecn_capable());
    EXPECT_EQ(header.identity(), 0u);
    EXPECT_FALSE(header.lacks_checksum());
    header.mark();
    EXPECT_EQ(frame, before) << hex;
  }
}

TEST(IpHeader, FindsNoChecksumInALaterFragment) {
  Bytes frame = packet("a1b2");
  frame[14 + 7] = 5;
  EXPECT_EQ(IpHeader(view(frame)).identity(), 0x12340000u);
}

}  // namespace
}  // namespace nagi::io
