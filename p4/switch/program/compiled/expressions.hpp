// SPDX-License-Identifier: Apache-2.0
//
// Expressions of a compiled program.
#pragma once

#include <cstdint>

#include "program/compiled/fields.hpp"

namespace nagi::p4 {

enum class Op : std::uint8_t {
  // values
  constant,
  field,
  variable,  // a field of variable length
  parameter,
  stack_last,
  access,
  register_cell,
  lookahead,
  add,
  subtract,
  multiply,
  divide,
  modulo,
  shift_left,
  shift_right,
  bit_and,
  bit_or,
  bit_xor,
  bit_not,
  wrap_signed,
  saturate_signed,
  saturate_unsigned,
  choose,
  bool_to_value,
  last_index,
  stack_size,
  // truths
  truth,
  is_equal,
  is_different,
  less,
  less_or_equal,
  greater,
  greater_or_equal,
  bool_equal,
  bool_different,
  both,
  either,
  negate,
  value_to_bool,
  headers_equal,
  headers_different,
  is_valid,
  union_valid,
  // headers
  header,
  stack_element
};

/// The width of a calculation: word is 64 bits, twice is 128 bits, both signed; any is unbounded.
enum class Width : std::uint8_t { word, twice, any };

struct Node {
  Op op = Op::constant;
  Width width = Width::word;    // width of the operation
  Width compare = Width::word;  // width of the operands of comparisons
  // Whether truth_of() can evaluate the node inline. The node is then a comparison of two operands
  // that are constants or unsigned fields of at most 64 bits, such a field as a truth value, or the
  // validity of a header, whose word is in `field`.
  bool is_plain = false;
  Field field;  // for field, parameter, access (relative to the base) and lookahead
  Index a = none, b = none,
        c = none;           // operands; or the index of a stack, register, header or constant
  std::uint64_t value = 0;  // value of a constant of 64 bits, or of a truth
};

}  // namespace nagi::p4
