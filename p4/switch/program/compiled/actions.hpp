// SPDX-License-Identifier: Apache-2.0
//
// Actions of a compiled program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program/compiled/fields.hpp"

namespace nagi::p4 {

enum class Do : std::uint8_t {
  set_constant,
  set_field,      // both of at most 64 bits
  set_parameter,  // the same
  set_value,
  set_wide,
  set_dynamic,  // of a header that is known only then
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

struct Step {
  Do code = Do::exit;
  bool flag = false;                   // adds to packet_length; jumps back
  Field to;                            // the field that is set
  Field from;                          // where it comes from, of copies
  Index a = none, b = none, c = none;  // expressions, or the index of what it works on
  Index target = none;                 // header expression of set_dynamic
  std::uint64_t value = 0;             // a constant, a mask or the step to jump to
};

struct Parameter {
  std::string name;
  std::uint32_t bits = 0;
  Field field;  // word: in the entry's data; a bit wider and signed where the program gives a
                // negative value
};

struct Action {
  std::string name;
  std::vector<Parameter> parameters;
  std::uint32_t words = 0;  // of data
  std::vector<Step> steps;
};

struct LogMessage {
  std::vector<std::string> pieces;  // what is between the values: one more than there are values
  std::vector<Index> values;
};

}  // namespace nagi::p4
