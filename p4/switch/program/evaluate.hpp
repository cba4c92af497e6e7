// SPDX-License-Identifier: Apache-2.0
//
// Evaluates the expressions of a compiled program. By definition, the arithmetic uses unbounded
// integers, and results are truncated when they are stored. Because the loader has determined how
// many bits of each intermediate result are needed (Node::width), nearly all arithmetic uses 64
// bits.
#pragma once

#include <boost/multiprecision/cpp_int.hpp>
#include <cstdint>

#include "program/compiled.hpp"
#include "program/staged.hpp"

namespace nagi::p4 {

/// An unbounded integer. Up to 1,024 bits need no memory from the heap.
using Big = boost::multiprecision::number<
    boost::multiprecision::cpp_int_backend<1024, 0, boost::multiprecision::signed_magnitude,
                                           boost::multiprecision::unchecked>,
    boost::multiprecision::et_off>;
using Twice = __int128;

/// The data that an expression may read.
struct Scope {
  const Compiled& program;
  std::uint64_t* words;       // the packet's words
  const std::uint64_t* data;  // the values of the action's parameters
  const std::vector<Staged<std::vector<std::uint64_t>>>& registers;
  const std::uint8_t* ahead = nullptr;  // the bytes that are not yet parsed
  std::size_t ahead_bytes = 0;
  std::uint64_t* outside;  // counter of accesses outside an array, which is incremented
};

/// Evaluate an expression of any kind. Return the low 64 bits of its value.
std::uint64_t calculated_word(const Scope& scope, Index node);
/// Evaluate an expression, fast for fields and constants. Return the low 64 bits of its value.
inline std::uint64_t word_of(const Scope& scope, Index index) {
  const Node& node = scope.program.nodes[index];
  if (node.op == Op::field && node.width == Width::word && !node.field.is_signed) {
    return scope.words[node.field.word];
  }
  if (node.op == Op::constant && node.a == none) return node.value;
  return calculated_word(scope, index);
}
/// Evaluate an expression. Write the low `limbs` words of its value, in two's complement, to `to`.
void words_of(const Scope& scope, Index node, std::uint64_t* to, std::uint32_t limbs);
/// Evaluate a condition of any kind.
bool calculated_truth(const Scope& scope, Index node);
/// Evaluate a condition, fast for comparisons of fields and constants, and for validity of headers.
inline bool truth_of(const Scope& scope, Index index) {
  const Node& node = scope.program.nodes[index];
  if (!node.is_plain) return calculated_truth(scope, index);
  if (node.op == Op::is_valid) return scope.words[node.field.word] != 0;
  if (node.op == Op::value_to_bool) return word_of(scope, node.b) != 0;
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
/// Evaluate an expression that selects a header. Return the index of the header, or `none` if a
/// stack has no such element.
Index header_of(const Scope& scope, Index node);
/// Evaluate an expression. Return its value as decimal text.
std::string text_of(const Scope& scope, Index node);

/// Read `bits` bits from bit `at` of `bytes` into words, the lowest first.
void read_bits(const std::uint8_t* bytes, std::size_t at, std::uint32_t bits, std::uint64_t* to);

/// Convert the words of a number of `bits` bits to big-endian bytes, as few as this width needs.
std::vector<std::uint8_t> bytes_of_words(const std::uint64_t* words, std::uint32_t bits);
/// Convert big-endian bytes to the words of a number of `bits` bits. Return an empty vector if the
/// number does not fit.
std::vector<std::uint64_t> words_of_bytes(const std::vector<std::uint8_t>& bytes,
                                          std::uint32_t bits);

}  // namespace nagi::p4
