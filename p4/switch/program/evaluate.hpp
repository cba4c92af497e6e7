// SPDX-License-Identifier: Apache-2.0
//
// Evaluates a compiled program's expressions. P4's arithmetic here is that of whole numbers without
// end, cut to size where a value is stored; the loader has worked out how many bits of each
// intermediate result matter (Node::width), so that nearly everything is done in 64.
#pragma once

#include <boost/multiprecision/cpp_int.hpp>
#include <cstdint>

#include "program/compiled.hpp"
#include "program/staged.hpp"

namespace nagi::p4 {

/// Any number. Up to 1,024 bits need no memory from the heap.
using Big = boost::multiprecision::number<
    boost::multiprecision::cpp_int_backend<1024, 0, boost::multiprecision::signed_magnitude,
                                           boost::multiprecision::unchecked>,
    boost::multiprecision::et_off>;
using Twice = __int128;

/// What an expression is evaluated over.
struct Scope {
  const Compiled& program;
  std::uint64_t* words;       // the packet's
  const std::uint64_t* data;  // the action's parameters
  const std::vector<Staged<std::vector<std::uint64_t>>>& registers;
  const std::uint8_t* ahead = nullptr;  // what is not yet parsed
  std::size_t ahead_bytes = 0;
  std::uint64_t* outside;  // counts accesses outside an array
};

/// The low 64 bits of a value.
std::uint64_t calculated_word(const Scope& scope, Index node);
/// The same; most values are fields and constants.
inline std::uint64_t word_of(const Scope& scope, Index index) {
  const Node& node = scope.program.nodes[index];
  if (node.op == Op::field && node.width == Width::word && !node.field.is_signed) {
    return scope.words[node.field.word];
  }
  if (node.op == Op::constant && node.a == none) return node.value;
  return calculated_word(scope, index);
}
/// A value's low bits, as many words as asked for, two's complement.
void words_of(const Scope& scope, Index node, std::uint64_t* to, std::uint32_t limbs);
bool calculated_truth(const Scope& scope, Index node);
/// A condition; most compare fields and constants, or ask whether a header is valid.
inline bool truth_of(const Scope& scope, Index index) {
  const Node& node = scope.program.nodes[index];
  if (!node.is_plain) return calculated_truth(scope, index);
  if (node.op == Op::is_valid) return scope.words[node.field.word] != 0;
  if (node.op == Op::of_value) return word_of(scope, node.b) != 0;
  const std::uint64_t a = word_of(scope, node.a);
  const std::uint64_t b = word_of(scope, node.b);
  switch (node.op) {
    case Op::is_equal:
      return a == b;
    case Op::is_different:
      return a != b;
    case Op::less:
      return a < b;
    case Op::less_or_equal:
      return a <= b;
    case Op::greater:
      return a > b;
    default:
      return a >= b;
  }
}
/// The index of a header, or nothing, where a stack has no such element.
Index header_of(const Scope& scope, Index node);
/// A value in decimal, for people.
std::string text_of(const Scope& scope, Index node);

/// Reads `bits` bits from bit `at` of `bytes` on into words, the lowest first.
void read_bits(const std::uint8_t* bytes, std::size_t at, std::uint32_t bits, std::uint64_t* to);

/// A number's words as bytes, big endian, as few as its width needs; and back: too few words for
/// the number are no words at all.
std::vector<std::uint8_t> bytes_of_words(const std::uint64_t* words, std::uint32_t bits);
std::vector<std::uint64_t> words_of_bytes(const std::vector<std::uint8_t>& bytes,
                                          std::uint32_t bits);

}  // namespace nagi::p4
