// SPDX-License-Identifier: Apache-2.0
//
// Headers of a compiled program, and where their fields lie in a packet.
//
// A packet's fields lie in 64-bit words. A header takes, from its base on: its validity (0 or 1),
// where in the frame it was extracted, whether a field was written since, and then its fields:
// up to 64 bits in one word, wider ones in several, the lowest first. A field of variable length
// takes a word for its length in bits, and then its bytes as they are in the frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace nagi::p4 {

using Index = std::uint32_t;
constexpr Index none = 0xffffffff;
constexpr std::uint32_t max_field_words = 32;  // 2,048 bits, the widest that p4c makes

// Of a header's first words.
constexpr Index valid_word = 0;
constexpr Index origin_word = 1;   // its offset in the frame, plus 1; 0: not from the frame
constexpr Index written_word = 2;  // not 0: the frame no longer says what the fields say
constexpr Index first_field_word = 3;

struct Field {
  Index word = 0;           // of its header's type: from the base on; else: in the packet
  Index written = 0;        // its header's written_word
  std::uint32_t bits = 0;   // of one of variable length: the most it can have
  std::uint32_t limbs = 1;  // words
  bool is_signed = false;
  bool is_variable = false;
  [[nodiscard]] std::uint64_t mask() const { return bits >= 64 ? ~0ULL : (1ULL << bits) - 1; }
  [[nodiscard]] std::uint64_t top_mask() const {
    return bits % 64 == 0 ? ~0ULL : (1ULL << (bits % 64)) - 1;
  }
};

/// How a field of at most 64 bits comes out of a header of at least 8 bytes: 8 bytes from `at` on,
/// big endian, shifted and masked.
struct Pick {
  Index word;  // of the header
  std::uint32_t at;
  std::uint32_t shift;
  std::uint64_t mask;
};

/// How fields go into bytes, 8 of them at a time, the first in the highest bits: words of a header,
/// shifted to the left or to the right.
struct Place {
  Index word;
  std::uint8_t left, right;
};
struct Chunk {
  std::uint32_t bytes = 0;  // 8, or what is left at the end
  std::vector<Place> places;
  [[nodiscard]] std::uint64_t value(const std::uint64_t* words) const {
    std::uint64_t all = 0;
    for (const Place& place : places) all |= words[place.word] << place.left >> place.right;
    return all;
  }
};

struct HeaderType {
  std::string name;
  std::vector<std::string> names;  // of the fields
  std::vector<Field> fields;
  std::vector<Pick> picks;      // as many as fields, if it can be extracted that way
  std::vector<Chunk> chunks;    // if it has no field of variable length
  Index variable = none;        // the field of variable length
  std::uint32_t bits = 0;       // without what is variable
  std::uint32_t words = 0;      // of one header
  std::uint32_t max_bytes = 0;  // with what is variable
};

struct Header {
  std::string name;
  Index type = 0;
  Index base = 0;
  Index of_union = none;  // of whose headers only one is valid
  bool is_metadata = false;
};

struct Union {
  std::string name;
  Index type = 0;
  std::vector<Index> headers;
};

/// Of headers, or of unions: then an element has as many headers as the union.
struct Stack {
  std::string name;
  Index type = 0;  // of a header, or of a union
  Index next = 0;  // the word that counts the extracted ones
  std::uint32_t width = 1;
  std::vector<Index> headers;
  [[nodiscard]] std::size_t size() const { return headers.size() / width; }
};

}  // namespace nagi::p4
