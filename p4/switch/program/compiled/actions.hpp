// SPDX-License-Identifier: Apache-2.0
//
// Actions of a compiled program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program/compiled/fields.hpp"

namespace nagi::p4 {

/// What a step of an action does.
enum class Do : std::uint8_t {
  set_constant,
  set_field,      // both fields have at most 64 bits
  set_parameter,  // the parameter has at most 64 bits
  set_value,
  set_wide,
  set_dynamic,  // the header is chosen at run time
  set_variable,
  set_header,
  set_stack,
  set_union,
  push,
  pop,
  jump,
  jump_if_zero,
  exit,
  assertion,
  log,
  add_header,
  remove_header,
  mark_to_drop,
  clone,
  resubmit,
  recirculate,
  digest,
  register_read,
  register_write,
  count,
  meter,
  hash,
  random,
  truncate,
  nothing,
};

/// A step of an action. Which members it uses depends on `code`.
struct Step {
  Do code = Do::exit;
  bool flag = false;                   // add_header: changes packet_length; jumps: jumps backwards
  Field to;                            // field that is set
  Field from;                          // source of copies
  Index a = none, b = none, c = none;  // expressions, or indices of objects
  Index target = none;                 // expression for the header of set_dynamic
  std::uint64_t value = 0;             // a constant, a mask or the index of the step to jump to
};

struct Parameter {
  std::string name;
  std::uint32_t bits = 0;
  // Its `word` is an index in the data of an entry. If the program assigns a negative value, the
  // field is signed and one bit wider.
  Field field;
};

struct Action {
  std::string name;
  std::vector<Parameter> parameters;
  std::uint32_t words = 0;  // number of words for the values of all parameters
  std::vector<Step> steps;
};

struct LogMessage {
  std::vector<std::string> pieces;  // texts between the values: one more than there are values
  std::vector<Index> values;
};

}  // namespace nagi::p4
