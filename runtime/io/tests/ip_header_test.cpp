// SPDX-License-Identifier: Apache-2.0
#include "io/ip_header.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
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

// Ethernet, IPv4 (identification 0x1234, ECT(0), correct header checksum), UDP 9 -> 10, 4 bytes
// "nagi". The checksums were computed by hand.
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

/// Return the frame with the UDP checksum `checksum`.
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

TEST(IpHeader, KnowsASegmentOverIpv6ByItsNumbers) {
  // IPv6 with TCP 9 -> 10: sequence 0x0001fffe, acknowledgement 0x00020005, checksum 0xa1b2.
  Bytes frame = from_hex(
      "02020202020201010101010186dd"
      "6000000000140640"
      "fd6e6167690000000000000000000001fd6e6167690000000000000000000002"
      "0009000a0001fffe0002000550100040a1b20000");
  EXPECT_EQ(IpHeader(view(frame)).identity(), 0x0003a1b2u);
  frame.resize(14 + 40 + 8);  // truncated after the sequence number
  EXPECT_EQ(IpHeader(view(frame)).identity(), 0u);
}

TEST(IpHeader, MarksWhatIsCapable) {
  Bytes frame = packet("a1b2");
  ASSERT_EQ(header_sum(frame), 0xffff);  // the header's checksum is correct
  EXPECT_NE(IpHeader(view(frame)).ecn(), 0);
  IpHeader(view(frame)).mark();
  EXPECT_EQ(frame[15], 3);
  EXPECT_EQ(header_sum(frame), 0xffff);
  EXPECT_TRUE(IpHeader(view(frame)).ecn() == 0 || IpHeader(view(frame)).ecn() == 3);
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
  EXPECT_NE(IpHeader(view(frame)).ecn(), 0);
  EXPECT_EQ(IpHeader(view(frame)).identity(), 0xa1b2u);
  IpHeader(view(frame)).mark();
  EXPECT_EQ(frame[15], 0x30);
}

/// Return whether the checksum of TCP or UDP is correct: the sum of pseudo-header and payload is
/// 0xffff.
bool is_right(const Bytes& frame) {
  const std::size_t ip = frame[12] == 0x81 ? 18 : 14;
  const bool four = frame[ip] >> 4 == 4;
  const std::size_t payload = ip + (four ? (frame[ip] & 15U) * 4U : 40U);
  const std::size_t end =
      ip + (four ? frame[ip + 2] << 8 | frame[ip + 3] : 40U + (frame[ip + 4] << 8 | frame[ip + 5]));
  std::uint32_t sum = frame[ip + (four ? 9 : 6)] + static_cast<std::uint32_t>(end - payload);
  const auto add = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) sum += frame[i] << ((i - from) % 2 == 0 ? 8 : 0);
  };
  add(ip + (four ? 12 : 8), ip + (four ? 20 : 40));
  add(payload, end);
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return sum == 0xffff;
}

/// An IP packet of a host with checksum offload, and the offset of its checksum.
struct LeftOut {
  Bytes frame;
  std::size_t place;
};

LeftOut left_out(bool four, bool tcp, const Bytes& data, bool tagged = false) {
  const std::size_t head = tcp ? 20 : 8;
  const std::size_t length = head + data.size();
  const auto high = static_cast<std::uint8_t>(length >> 8);
  const auto low = static_cast<std::uint8_t>(length);
  Bytes frame = from_hex("020202020202010101010101");
  const auto append = [&frame](const Bytes& bytes) {
    frame.insert(frame.end(), bytes.begin(), bytes.end());
  };
  if (tagged) append({0x81, 0, 0, 5});
  append(four ? Bytes{8, 0} : Bytes{0x86, 0xdd});
  const std::size_t ip = frame.size();
  const auto protocol = static_cast<std::uint8_t>(tcp ? 6 : 17);
  if (four) {
    append({0x45, 0, static_cast<std::uint8_t>((length + 20) >> 8),
            static_cast<std::uint8_t>(length + 20), 0, 1, 0x40, 0, 64, protocol, 0, 0});
    append({10, 0, 0, 1, 10, 0, 0, 2});
  } else {
    append({0x60, 0, 0, 0, high, low, protocol, 64});
    append(from_hex("20010db8000000000000000000000001fd00aaaabbbbccccddddeeeeffff0002"));
  }
  const std::size_t payload = frame.size();
  append({0x13, 0x89, 0x13, 0x8a});
  append(tcp ? Bytes{0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x18, 1, 0, 0, 0, 0, 0}
             : Bytes{high, low, 0, 0});
  append(data);
  // Linux stores the sum of the pseudo-header, folded and not complemented.
  std::uint32_t sum = protocol + static_cast<std::uint32_t>(length);
  for (std::size_t i = ip + (four ? 12 : 8); i < payload; i += 2) {
    sum += static_cast<std::uint32_t>(frame[i] << 8 | frame[i + 1]);
  }
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  const std::size_t place = payload + (tcp ? 16 : 6);
  frame[place] = static_cast<std::uint8_t>(sum >> 8);
  frame[place + 1] = static_cast<std::uint8_t>(sum);
  return {frame, place};
}

TEST(IpHeader, CompletesAChecksumLeftToHardware) {
  // Pseudo-header: 0a00 + 0001 + 0a00 + 0002 + 0011 + 000c = 1420. Payload: 0009 + 000a + 000c +
  // 6e61 + 6769 = d5e9. The correct checksum is ~(1420 + d5e9) = ~ea09 = 15f6.
  Bytes frame = packet("1420");
  EXPECT_TRUE(IpHeader(view(frame)).complete_checksum());
  EXPECT_EQ(frame, packet("15f6"));
  EXPECT_FALSE(IpHeader(view(frame)).complete_checksum());
  EXPECT_EQ(frame, packet("15f6"));
}

TEST(IpHeader, LeavesOtherChecksumsAsTheyAre) {
  // A correct checksum, a checksum damaged on the way, and no checksum.
  for (const char* checksum : {"15f6", "15f7", "0000"}) {
    Bytes frame = packet(checksum);
    EXPECT_FALSE(IpHeader(view(frame)).complete_checksum());
    EXPECT_EQ(frame, packet(checksum));
  }
}

TEST(IpHeader, CompletesChecksumsOfAllKindsOfPackets) {
  std::mt19937 random(1);
  for (const bool four : {true, false}) {
    for (const bool tcp : {true, false}) {
      for (const bool tagged : {true, false}) {
        for (std::size_t length = 0; length < 1400; length = length * 2 + 1) {
          Bytes data(length);
          for (auto& byte : data) byte = static_cast<std::uint8_t>(random());
          auto [frame, place] = left_out(four, tcp, data, tagged);
          Bytes expected = frame;
          ASSERT_FALSE(is_right(frame));
          frame.resize(std::max<std::size_t>(frame.size(), 60));  // Ethernet's padding
          expected.resize(frame.size());
          EXPECT_TRUE(IpHeader(view(frame)).complete_checksum());
          EXPECT_TRUE(is_right(frame)) << four << tcp << tagged << length;
          expected[place] = frame[place];
          expected[place + 1] = frame[place + 1];
          EXPECT_EQ(frame, expected);  // nothing else has changed
          const Bytes whole = frame;
          EXPECT_FALSE(IpHeader(view(frame)).complete_checksum());
          EXPECT_EQ(frame, whole);
        }
      }
    }
  }
}

TEST(IpHeader, WritesAChecksumOfZeroAsUdpHasIt) {
  // With these data, the sum is 0xffff and the checksum 0, which UDP writes as 0xffff.
  for (const bool tcp : {false, true}) {
    auto [frame, place] = left_out(true, tcp, {0, 0});
    Bytes zero = frame;
    IpHeader(view(zero)).complete_checksum();
    frame[frame.size() - 2] = zero[place];
    frame[frame.size() - 1] = zero[place + 1];
    EXPECT_TRUE(IpHeader(view(frame)).complete_checksum());
    EXPECT_EQ(frame[place] << 8 | frame[place + 1], tcp ? 0 : 0xffff);
    EXPECT_TRUE(is_right(frame));
  }
}

TEST(IpHeader, LeavesFragmentsAndWhatIsCutOffAlone) {
  const auto [whole, place] = left_out(true, false, Bytes(100, 7));
  for (const bool first : {true, false}) {  // more fragments follow; a later fragment
    Bytes frame = whole;
    frame[14 + 6] = first ? 0x20 : 0;
    frame[14 + 7] = first ? 0 : 1;
    const Bytes before = frame;
    EXPECT_FALSE(IpHeader(view(frame)).complete_checksum());
    EXPECT_EQ(frame, before);
  }
  for (std::size_t length = 0; length < whole.size(); ++length) {
    Bytes frame(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    const Bytes before = frame;
    EXPECT_FALSE(IpHeader(view(frame)).complete_checksum());
    EXPECT_EQ(frame, before);
  }
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
    EXPECT_TRUE(header.ecn() == 0 || header.ecn() == 3);
    EXPECT_EQ(header.identity(), 0u);
    EXPECT_FALSE(header.complete_checksum());
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
