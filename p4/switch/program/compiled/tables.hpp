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
  Index value = none;       // an expression, if the field is chosen at run time
  Index word = 0;           // index of its first word in the key
  std::uint32_t shift = 0;  // position in the word; wide fields have words of their own
};

struct Table {
  std::string name;
  Kind kind = Kind::exact;
  std::vector<KeyField> key;
  std::uint32_t words = 0;
  // mask that the program applies to the key; empty without one
  std::vector<std::uint64_t> key_mask;
  std::uint64_t size = 0;
  std::vector<Index> actions;
  std::vector<Index> next;  // next node by action, parallel to `actions`
  /// For each action of the table's action profile, its position in `actions`, or `none`. Empty
  /// without an action profile. The compiler gives the same action another id in each table.
  std::vector<Index> profile_choices;
  bool by_hit = false;  // whether the next node depends on hit or miss instead of the action
  Index hit_next = none, miss_next = none, base_next = none;
  Index default_action = none;
  std::vector<std::uint64_t> default_data;
  bool default_is_constant = false, default_action_is_constant = false;
  bool is_constant = false;
  bool is_hidden = false;
  Index profile = none;
  bool with_groups = false;
  bool with_timeouts = false;  // whether entries may have an idle timeout
  bool with_counters = false;
  std::string counter_name;
  Index meter = none;
  std::uint32_t data_words = 0;  // words of data per entry: the maximum over the actions
};

struct Profile {
  std::string name;
  std::uint64_t size = 0;
  Index selector = none;  // index of the calculation that selects a member of a group
  std::vector<Index> actions;
};

struct FlowNode {
  /// `equal` is a condition that compares a word of the packet with `value`; it is faster than
  /// `condition`.
  enum class Kind : std::uint8_t { table, condition, equal, action } kind = Kind::table;
  Index index = none;  // index of a table, expression, word or action
  Index yes = none, no = none;
  std::uint64_t value = 0;
};

struct Pipeline {
  Index first = none;
  std::vector<FlowNode> nodes;
};

}  // namespace nagi::p4
