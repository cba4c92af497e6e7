// SPDX-License-Identifier: Apache-2.0
#include "program/control.hpp"

#include <algorithm>
#include <tuple>

#include "program/operation.hpp"

namespace nagi::p4 {

namespace {

int compare(const Words& a, const Words& b) {
  for (std::size_t i = a.size(); i-- > 0;) {
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  }
  return 0;
}

bool outside(const Words& value, const Words& mask) {
  for (std::size_t i = 0; i < value.size(); ++i) {
    if ((value[i] & ~mask[i]) != 0) return true;
  }
  return false;
}

/// Check the match of the next field of an entry's key, and add it to the builder. `table` is for
/// error messages.
void put(KeyBuilder& builder, const std::string& table, const Match& match) {
  const KeyField& field = builder.next();
  const std::uint32_t bits = field.field.bits;
  const std::string where = table + ": " + field.name;
  const auto words = [&](const Bytes& bytes) { return words_for(where, bytes, bits); };
  const auto only = [&](bool fits, const char* match_name) {
    if (!fits) {
      refuse(where, std::string(match_name) + " for a field of kind " + kind_name(field.match),
             field.match == MatchKind::exact ? "give a value"
                                             : "give a match of this kind, or a value");
    }
  };
  if (const auto* exact = std::get_if<Exact>(&match)) {
    if (field.match == MatchKind::lpm) {
      builder.prefix(words(exact->value), bits);
    } else {
      builder.exact(words(exact->value));
    }
  } else if (const auto* prefix = std::get_if<Prefix>(&match)) {
    only(field.match == MatchKind::lpm || field.match == MatchKind::ternary, "a prefix");
    if (prefix->length > bits) {
      refuse(where, "a prefix of " + std::to_string(prefix->length) + " bits",
             "the field has " + std::to_string(bits));
    }
    const Words value = words(prefix->value);
    if (outside(value, KeyBuilder::high_ones(bits, prefix->length))) {
      refuse(where, "bits are set after the prefix", "set them to 0");
    }
    builder.prefix(value, prefix->length);
  } else if (const auto* ternary = std::get_if<Ternary>(&match)) {
    only(field.match == MatchKind::ternary, "a mask");
    const Words value = words(ternary->value);
    const Words mask = words(ternary->mask);
    if (outside(value, mask)) refuse(where, "bits are set outside the mask", "set them to 0");
    builder.ternary(value, mask);
  } else if (const auto* range = std::get_if<Range>(&match)) {
    only(field.match == MatchKind::range, "a range");
    const Words low = words(range->low);
    const Words high = words(range->high);
    if (compare(low, high) > 0) refuse(where, "a range that is empty", "give low <= high");
    builder.range(low, high);
  } else {
    only(field.match != MatchKind::exact && field.match != MatchKind::valid, "no value");
    builder.any();
  }
}

}  // namespace

void Control::begin() {
  if (state_.transaction.is_open()) {
    refuse("begin", "a transaction is open already", "commit it or roll it back");
  }
  state_.transaction.begin();
}

void Control::commit() { state_.transaction.commit(); }

void Control::roll_back() { state_.transaction.roll_back(); }

namespace {

/// Check and build the key of an entry.
Key key_of(const Table& table, const std::vector<Match>& match,
           std::optional<std::int32_t> priority) {
  if (table.key.empty()) {
    refuse(table.name, "it has no key, so it has no entries", "set its default action");
  }
  if (match.size() != table.key.size()) {
    std::string names;
    for (const KeyField& field : table.key) {
      names += (names.empty() ? "" : ", ") + field.name + " (" + kind_name(field.match) + ")";
    }
    refuse(table.name, std::to_string(match.size()) + " key fields", "give " + names);
  }
  const bool ranked = table.kind == Kind::ternary || table.kind == Kind::range;
  if (ranked && !priority) {
    refuse(table.name, "no priority",
           "give one; the entry with the smallest number wins among those that match");
  }
  KeyBuilder builder(table);
  for (const Match& one : match) put(builder, table.name, one);
  return builder.finish(ranked ? *priority : 0);
}

}  // namespace

Handle Control::table_add(const std::string& name, const std::vector<Match>& match,
                          const Target& target, std::optional<std::int32_t> priority,
                          std::optional<std::uint64_t> timeout_us) {
  Operation operation(state_);
  const Index index = operation.table(name);
  const Table& table = state_.program->tables[index];
  const TableState& entries = state_.tables[index].now();
  operation.not_constant(index);
  Key key = key_of(table, match, priority);
  if (entries.find_same(key) != none) {
    refuse(name, "there is an entry with this key already", "modify or delete that entry",
           already_exists);
  }
  if (entries.used() >= table.size) {
    refuse(name, "it is full: " + std::to_string(table.size) + " entries",
           "delete some, or give the table a greater size in the P4 program", resource_exhausted);
  }
  Words data;
  const Result result = operation.result(index, target, data);
  if (timeout_us) operation.timed(index);
  operation.refer(index, result, 1);
  TableState& changed = operation.change(state_.tables[index]);
  const Handle handle = changed.add(std::move(key), result, data, now_us_);
  if (timeout_us) changed.set_timeout(*changed.find_entry(handle), *timeout_us, now_us_);
  return handle;
}

Handle Control::table_find(const std::string& name, const std::vector<Match>& match,
                           std::optional<std::int32_t> priority) const {
  Operation operation(state_);
  const Index index = operation.table(name);
  const TableState& entries = state_.tables[index].now();
  const Index entry = entries.find_same(key_of(state_.program->tables[index], match, priority));
  if (entry == none) {
    refuse(name, "there is no entry with this key",
           "give the key of an entry, with its priority if it has one", not_found);
  }
  return entries.handle(entry);
}

std::vector<Expired> Control::expired() {
  std::vector<Expired> all;
  std::vector<Handle> handles;
  for (std::size_t i = 0; i < state_.tables.size(); ++i) {
    const Table& table = state_.program->tables[i];
    if (!table.with_timeouts) continue;
    handles.clear();
    state_.tables[i].live.expire(now_us_, handles);
    for (const Handle handle : handles) {
      // The open transaction may have deleted the entry.
      if (state_.tables[i].now().find_entry(handle)) {
        all.push_back({table.name, table_entry(table.name, handle)});
      }
    }
  }
  return all;
}

void Control::table_modify(const std::string& name, Handle handle, const Target& target,
                           std::optional<std::uint64_t> timeout_us) {
  Operation operation(state_);
  const Index index = operation.table(name);
  operation.not_constant(index);
  const Index entry = operation.entry(index, handle);
  Words data;
  const Result result = operation.result(index, target, data);
  if (timeout_us) operation.timed(index);
  TableState& entries = operation.change(state_.tables[index]);
  operation.refer(index, entries.result(entry), -1);
  operation.refer(index, result, 1);
  entries.modify(entry, result, data);
  if (timeout_us) entries.set_timeout(entry, *timeout_us, now_us_);
}

void Control::table_delete(const std::string& name, Handle handle) {
  Operation operation(state_);
  const Index index = operation.table(name);
  operation.not_constant(index);
  const Index entry = operation.entry(index, handle);
  TableState& entries = operation.change(state_.tables[index]);
  operation.refer(index, entries.result(entry), -1);
  entries.erase(entry);
}

void Control::table_clear(const std::string& name) {
  Operation operation(state_);
  const Index index = operation.table(name);
  operation.not_constant(index);
  TableState& entries = operation.change(state_.tables[index]);
  for (Index entry = entries.next_used(0); entry != none; entry = entries.next_used(entry + 1ULL)) {
    operation.refer(index, entries.result(entry), -1);
  }
  entries.clear();
}

void Control::table_default(const std::string& name, const Target& target) {
  Operation operation(state_);
  const Index index = operation.table(name);
  const Table& table = state_.program->tables[index];
  if (table.default_is_constant) {
    refuse(name, "its default action is constant", "change it in the P4 program",
           failed_precondition);
  }
  Words data;
  const Result result = operation.result(index, target, data);
  if (table.default_action_is_constant && result.index != table.default_action) {
    refuse(name, "its default action is constant", "only its data can change", failed_precondition);
  }
  TableState& entries = operation.change(state_.tables[index]);
  operation.refer(index, entries.miss, -1);
  operation.refer(index, result, 1);
  entries.miss = result;
  entries.miss_data = std::move(data);
}

void Control::table_default_reset(const std::string& name) {
  Operation operation(state_);
  const Index index = operation.table(name);
  TableState& entries = operation.change(state_.tables[index]);
  operation.refer(index, entries.miss, -1);
  std::tie(entries.miss, entries.miss_data) = initial_miss(state_.program->tables[index]);
}

}  // namespace nagi::p4
