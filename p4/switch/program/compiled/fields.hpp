// SPDX-License-Identifier: Apache-2.0
//
// Headers of a compiled program, and the positions of their fields in a packet.
//
// The fields of a packet are stored in 64-bit words. A header has these words, from its base on:
// its validity (0 or 1), its offset in the frame, whether a field was written since the header was
// extracted, and its fields. A field of up to 64 bits takes one word, a wider field several words,
// the lowest word first. A field of variable length takes a word for its length in bits, followed
// by its bytes in the order of the frame.
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
  Index word = 0;           // index in the packet; in a header type, relative to the base
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

/// How to extract a field of at most 64 bits from a header of at least 8 bytes: read 8 bytes at
/// offset `at`, big endian, shift them to the right, and mask them.
struct Pick {
  Index word;  // word of the field, relative to the base
  std::uint32_t at;
  std::uint32_t shift;
  std::uint64_t mask;
};

/// A word that contributes to a Chunk, and the shift to its position there, to the left or to the
/// right.
struct WordPart {
  Index word;
  std::uint8_t left, right;
};
/// Up to 8 consecutive bytes of a header, which are assembled from words. The first byte is in the
/// highest bits.
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
  std::vector<Pick> picks;      // one per field; empty if fields cannot be extracted that way
  std::vector<Chunk> chunks;    // all bytes; empty if a field has variable length
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
