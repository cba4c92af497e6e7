// SPDX-License-Identifier: Apache-2.0
//
// Tables of a compiled program, and the order in which a packet runs through them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program/compiled/fields.hpp"

namespace nagi::p4 {

enum class MatchKind : std::uint8_t { exact, lpm, ternary, range, valid };
enum class Kind : std::uint8_t { exact, lpm, ternary, range };

struct KeyField {
  std::string name;
  MatchKind match = MatchKind::exact;
  Field field;
  Index value = none;       // an expression, where the field is known only at run time
  Index word = 0;           // its first word in the key
  std::uint32_t shift = 0;  // within it; wide ones have words of their own
};

struct Table {
  std::string name;
  Kind kind = Kind::exact;
  std::vector<KeyField> key;
  std::uint32_t words = 0;
  std::vector<std::uint64_t> key_mask;  // that the program lays on it; empty: none
  std::uint64_t size = 0;
  std::vector<Index> actions;
  std::vector<Index> next;  // by action, as in `actions`
  /// Where in `actions` those of its action profile are, or nothing. The compiler numbers the same
  /// action anew for each table.
  std::vector<Index> places;
  bool by_hit = false;  // what is next depends on whether it hit
  Index hit_next = none, miss_next = none, base_next = none;
  Index default_action = none;
  std::vector<std::uint64_t> default_data;
  bool default_is_constant = false, default_action_is_constant = false;
  bool is_constant = false;
  bool is_hidden = false;
  Index profile = none;
  bool with_groups = false;
  bool with_timeouts = false;  // its entries may have an idle timeout
  bool with_counters = false;
  std::string counter_name;
  Index meter = none;
  std::uint32_t data_words = 0;  // the most that an action takes
};

struct Profile {
  std::string name;
  std::uint64_t size = 0;
  Index selector = none;  // a calculation
  std::vector<Index> actions;
};

struct FlowNode {
  /// `equal`: the condition that a word of the packet has a value, as most conditions are.
  enum class What : std::uint8_t { table, condition, equal, action } what = What::table;
  Index index = none;  // table, expression, word or action
  Index yes = none, no = none;
  std::uint64_t value = 0;
};

struct Pipeline {
  Index first = none;
  std::vector<FlowNode> nodes;
};

}  // namespace nagi::p4
