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
  of_bool,
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
  of_value,
  headers_equal,
  headers_different,
  is_valid,
  union_valid,
  // headers
  header,
  stack_element
};

/// How wide a value must be calculated: 64 or 128 bits with a sign, or any number.
enum class Width : std::uint8_t { word, twice, any };

struct Node {
  Op op = Op::constant;
  Width width = Width::word;    // of the operation
  Width compare = Width::word;  // of comparisons: of the operands
  bool is_plain = false;  // a comparison of fields or constants of 64 bits, without a sign, or such
                          // a field; or the validity of a header, in `field`
  Field field;            // of field, parameter, access (from the base on), lookahead
  Index a = none, b = none,
        c = none;           // operands; or the index of a stack, register, header, constant
  std::uint64_t value = 0;  // of a constant of 64 bits, or a truth
};

}  // namespace nagi::p4
