// SPDX-License-Identifier: Apache-2.0
#include "program/hash.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace nagi::p4 {

namespace {

template <typename Word>
constexpr Word reflected(Word value) {
  Word result = 0;
  for (std::size_t i = 0; i < 8 * sizeof(Word); ++i) {
    result = static_cast<Word>((result << 1) | ((value >> i) & 1));
  }
  return result;
}

/// A CRC that processes and returns the lowest bit first: the polynomial is reflected.
template <typename Word, Word polynomial>
struct ReflectedCrc {
  static constexpr std::array<Word, 256> make() {
    std::array<Word, 256> values{};
    for (std::size_t byte = 0; byte < 256; ++byte) {
      auto rest = static_cast<Word>(byte);
      for (int bit = 0; bit < 8; ++bit) {
        const bool carry = (rest & 1) != 0;
        rest = static_cast<Word>(rest >> 1);
        if (carry) rest ^= reflected(polynomial);
      }
      values[byte] = rest;
    }
    return values;
  }
  static constexpr std::array<Word, 256> table = make();

  static Word compute(const std::uint8_t* bytes, std::size_t length, Word first) {
    Word rest = first;
    for (std::size_t i = 0; i < length; ++i) {
      const auto index = static_cast<std::uint8_t>(rest ^ bytes[i]);
      rest = static_cast<Word>(static_cast<std::uint64_t>(rest) >> 8);
      rest ^= table[index];
    }
    return rest;
  }
};

/// A CRC that processes and returns the highest bit first.
template <typename Word>
std::uint64_t plain_crc(const std::uint8_t* bytes, std::size_t length, Word polynomial,
                        Word first) {
  constexpr unsigned top = 8 * sizeof(Word) - 1;
  Word rest = first;
  for (std::size_t i = 0; i < length; ++i) {
    rest ^= static_cast<Word>(static_cast<Word>(bytes[i]) << (top - 7));
    for (int bit = 0; bit < 8; ++bit) {
      const bool carry = ((rest >> top) & 1) != 0;
      rest = static_cast<Word>(rest << 1);
      if (carry) rest ^= polynomial;
    }
  }
  return rest;
}

std::uint64_t crc16(const std::uint8_t* bytes, std::size_t length) {
  return ReflectedCrc<std::uint16_t, 0x8005>::compute(bytes, length, 0);
}

std::uint64_t crc32(const std::uint8_t* bytes, std::size_t length) {
  return static_cast<std::uint32_t>(
      ~ReflectedCrc<std::uint32_t, 0x04c11db7>::compute(bytes, length, 0xffffffff));
}

std::uint64_t crc64(const std::uint8_t* bytes, std::size_t length) {
  return ReflectedCrc<std::uint64_t, 0x1b>::compute(bytes, length, 0);
}

std::uint64_t crc8(const std::uint8_t* bytes, std::size_t length) {
  return plain_crc<std::uint8_t>(bytes, length, 0x07, 0);
}

std::uint64_t crc_ccitt(const std::uint8_t* bytes, std::size_t length) {
  return plain_crc<std::uint16_t>(bytes, length, 0x1021, 0xffff);
}

template <typename Word>
std::uint64_t exclusive_or(const std::uint8_t* bytes, std::size_t length) {
  Word result = 0;
  for (std::size_t i = 0; i < length; ++i) {
    const std::size_t position = sizeof(Word) - 1 - i % sizeof(Word);
    result ^= static_cast<Word>(static_cast<Word>(bytes[i]) << (8 * position));
  }
  return result;
}

/// Return the first bytes, at most eight, as a number.
std::uint64_t identity(const std::uint8_t* bytes, std::size_t length) {
  std::uint64_t result = 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(length, 8); ++i)
    result = result << 8 | bytes[i];
  return result;
}

struct Named {
  const char* name;
  HashFunction function;
};

constexpr Named functions[] = {
    {"csum16", internet_checksum},
    {"cksum16", internet_checksum},
    {"crc8_custom", crc8},
    {"crc16", crc16},
    {"crc16_custom", crc16},  // the custom CRCs start with the usual parameters
    {"crc32", crc32},
    {"crc32_custom", crc32},
    {"crc64_custom", crc64},
    {"crcCCITT", crc_ccitt},
    {"xor16", exclusive_or<std::uint16_t>},
    {"xor32", exclusive_or<std::uint32_t>},
    {"identity", identity},
};

}  // namespace

std::uint64_t internet_checksum(const std::uint8_t* bytes, std::size_t length) {
  std::uint64_t sum = 0;
  std::size_t i = 0;
  for (; i + 4 <= length; i += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, bytes + i, 4);
    sum += word;
  }
  if (i < length) {
    std::uint32_t word = 0;
    std::memcpy(&word, bytes + i, length - i);
    sum += word;
  }
  while ((sum >> 16) != 0) sum = (sum & 0xffff) + (sum >> 16);
  auto result = static_cast<std::uint16_t>(~sum);
  if constexpr (std::endian::native == std::endian::little) {
    result = static_cast<std::uint16_t>(result << 8 | result >> 8);
  }
  return result;
}

HashFunction hash_function(const std::string& name) {
  for (const Named& named : functions) {
    if (name == named.name) return named.function;
  }
  return nullptr;
}

}  // namespace nagi::p4
