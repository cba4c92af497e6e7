// SPDX-License-Identifier: Apache-2.0
//
// Compares hashes with the check values for "123456789" in catalogues of CRCs, with RFC 1071's
// example, and with the results of bmv2.
#include "program/hash.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace nagi::p4 {
namespace {

std::uint64_t hash(const std::string& name, const std::string& text) {
  const HashFunction function = hash_function(name);
  if (function == nullptr) return ~0ULL;
  return function(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
}

TEST(Hash, CatalogueValues) {
  const std::string digits = "123456789";
  EXPECT_EQ(hash("crc16", digits), 0xbb3dU);  // CRC-16/ARC
  EXPECT_EQ(hash("crc16_custom", digits), 0xbb3dU);
  EXPECT_EQ(hash("crc32", digits), 0xcbf43926U);
  EXPECT_EQ(hash("crc32_custom", digits), 0xcbf43926U);
  EXPECT_EQ(hash("crcCCITT", digits), 0x29b1U);
  EXPECT_EQ(hash("crc8_custom", digits), 0xf4U);
}

TEST(Hash, InternetChecksum) {
  const std::string example("\x00\x01\xf2\x03\xf4\xf5\xf6\xf7", 8);
  EXPECT_EQ(hash("csum16", example), static_cast<std::uint16_t>(~0xddf2U));
  EXPECT_EQ(hash("csum16", std::string("\x12", 1)), 0xedffU);  // as if a zero byte followed
  EXPECT_EQ(hash("csum16", ""), 0xffffU);
}

TEST(Hash, XorAndIdentity) {
  EXPECT_EQ(hash("xor16", std::string("\x12\x34\x01\x02\x80", 5)), (0x1234U ^ 0x0102U ^ 0x8000U));
  EXPECT_EQ(hash("identity", std::string("\x01\x02\x03", 3)), 0x010203U);
  EXPECT_EQ(hash("identity", std::string("\x01\x02\x03\x04\x05\x06\x07\x08\x09", 9)),
            0x0102030405060708U);
}

TEST(Hash, UnknownOnesAreNone) { EXPECT_EQ(hash_function("md5"), nullptr); }

}  // namespace
}  // namespace nagi::p4
