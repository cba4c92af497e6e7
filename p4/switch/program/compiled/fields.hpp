// SPDX-License-Identifier: Apache-2.0
//
// Headers of a compiled program, and where their fields lie in a packet.
//
// A packet's fields lie in 64-bit words. The words of a header, from its base on, are its validity
// (0 or 1), its offset in the frame, whether a field was written since it was extracted, and its
// fields: fields of up to 64 bits take one word, wider ones several, the lowest first. A field of
// variable length takes a word for its length in bits, followed by its bytes as they are in the
// frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace nagi::p4 {

using Index = std::uint32_t;
constexpr Index none = 0xffffffff;
constexpr std::uint32_t max_field_words = 32;  // 2,048 bits, the maximum of p4c

// The first words of a header.
constexpr Index valid_word = 0;
constexpr Index origin_word = 1;   // its offset in the frame, plus 1; 0 if it is not from the frame
constexpr Index written_word = 2;  // not 0 if fields differ from the frame
constexpr Index first_field_word = 3;

struct Field {
  Index word = 0;           // in a header type: relative to the base; else: index in the packet
  Index written = 0;        // written_word of its header
  std::uint32_t bits = 0;   // for a field of variable length: the maximum
  std::uint32_t limbs = 1;  // number of 64-bit words
  bool is_signed = false;
  bool is_variable = false;
  [[nodiscard]] std::uint64_t mask() const { return bits >= 64 ? ~0ULL : (1ULL << bits) - 1; }
  [[nodiscard]] std::uint64_t top_mask() const {
    return bits % 64 == 0 ? ~0ULL : (1ULL << (bits % 64)) - 1;
  }
};

/// The extraction of a field of at most 64 bits from a header of at least 8 bytes: 8 bytes from
/// offset `at`, big endian, shifted and masked.
struct Pick {
  Index word;  // word of the header
  std::uint32_t at;
  std::uint32_t shift;
  std::uint64_t mask;
};

/// The part of one word in 8 bytes of a header, whose first byte is in the highest bits: the word
/// is shifted left or right.
struct WordPart {
  Index word;
  std::uint8_t left, right;
};
/// Up to 8 bytes of a header, assembled from words.
struct Chunk {
  std::uint32_t bytes = 0;  // 8, or fewer at the end
  std::vector<WordPart> parts;
  [[nodiscard]] std::uint64_t value(const std::uint64_t* words) const {
    std::uint64_t all = 0;
    for (const WordPart& part : parts) all |= words[part.word] << part.left >> part.right;
    return all;
  }
};

struct HeaderType {
  std::string name;
  std::vector<std::string> names;  // names of the fields
  std::vector<Field> fields;
  std::vector<Pick> picks;      // one per field, if the header can be extracted that way
  std::vector<Chunk> chunks;    // pieces of 8 bytes; empty if a field has variable length
  Index variable = none;        // index of the field of variable length
  std::uint32_t bits = 0;       // without the field of variable length
  std::uint32_t words = 0;      // words of one header
  std::uint32_t max_bytes = 0;  // with the field of variable length
};

struct Header {
  std::string name;
  Index type = 0;
  Index base = 0;
  Index union_index = none;  // union of which only one header is valid
  bool is_metadata = false;
};

struct Union {
  std::string name;
  Index type = 0;
  std::vector<Index> headers;
};

/// A stack of headers or of unions. An element of a stack of unions has as many headers as the
/// union.
struct Stack {
  std::string name;
  Index type = 0;  // type of the headers or of the unions
  Index next = 0;  // word with the number of extracted elements
  std::uint32_t width = 1;
  std::vector<Index> headers;
  [[nodiscard]] std::size_t size() const { return headers.size() / width; }
};

}  // namespace nagi::p4
