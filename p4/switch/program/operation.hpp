// SPDX-License-Identifier: Apache-2.0
//
// Functions for the operations on a State: look-ups by name, checks of values, and errors. All
// functions throw InputError, with a cure, if a check fails.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "io/input_error.hpp"
#include "program/control.hpp"
#include "program/key.hpp"
#include "program/state.hpp"

namespace nagi::p4 {

using Words = std::vector<std::uint64_t>;

[[noreturn]] inline void refuse(const std::string& where, const std::string& problem,
                                const std::string& cure, const char* code = "") {
  throw InputError(where + ": " + problem + "; " + cure, code);
}

/// Return the index of the object with a name. `kind` is the kind of object, for the error message.
template <typename Object>
Index find(const std::vector<Object>& objects, const std::string& name, const char* kind) {
  for (Index i = 0; i < objects.size(); ++i) {
    if (objects[i].name == name) return i;
  }
  std::string names;
  for (const Object& object : objects) {
    if constexpr (requires { object.is_hidden; }) {
      if (object.is_hidden) continue;  // made by the compiler
    }
    names += (names.empty() ? "" : ", ") + object.name;
  }
  std::string problem = "there is no such ";
  problem += kind;
  refuse(name, problem, names.empty() ? "the program has none" : "give one of " + names, not_found);
}

/// Convert a number of at most `bits` bits to words. `where` names the field in error messages.
inline Words words_for(const std::string& where, const Bytes& bytes, std::uint32_t bits) {
  Words words = words_of_bytes(bytes, bits);
  if (words.empty()) {
    refuse(where, "a value of more than " + std::to_string(bits) + " bits", "give one that fits");
  }
  return words;
}

inline const char* kind_name(MatchKind kind) {
  constexpr const char* names[] = {"exact", "lpm", "ternary", "range", "valid"};
  return names[static_cast<std::size_t>(kind)];
}

/// Check the values of an action's parameters, and return them as consecutive words. `where` names
/// the table or action profile in error messages.
inline Words data_of(const Action& action, const std::string& where,
                     const std::vector<Bytes>& values) {
  if (values.size() != action.parameters.size()) {
    std::string names;
    for (const Parameter& one : action.parameters) names += (names.empty() ? "" : ", ") + one.name;
    refuse(where,
           action.name + " takes " + std::to_string(action.parameters.size()) + " values, not " +
               std::to_string(values.size()),
           names.empty() ? "give none" : "give " + names);
  }
  Words data;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Parameter& parameter = action.parameters[i];
    Words words =
        words_for(where + ": " + action.name + ": " + parameter.name, values[i], parameter.bits);
    words.resize(parameter.field.limbs);
    data.insert(data.end(), words.begin(), words.end());
  }
  return data;
}

/// Return the position of the action with a name in `allowed`, the actions that a table or action
/// profile permits. `where` names the table or profile in error messages.
inline Index find_action(const Compiled& program, const std::vector<Index>& allowed,
                         const std::string& where, const std::string& name) {
  std::string names;
  for (Index i = 0; i < allowed.size(); ++i) {
    const Action& action = program.actions[allowed[i]];
    if (action.name == name) return i;
    names += (names.empty() ? "" : ", ") + action.name;
  }
  refuse(where, "action " + name + " is not permitted here", "give one of " + names);
}

/// The look-ups and checks of one operation on a State.
class Operation {
 public:
  explicit Operation(State& state) : state_(state), program_(*state.program) {}

  /// Return a value so that the operation can change it: in a transaction, the copy that packets do
  /// not see.
  template <typename Value>
  Value& change(Staged<Value>& staged) const {
    return staged.change(state_.transaction);
  }

  /// Return the index of the table with a name.
  Index table(const std::string& name) const { return find(program_.tables, name, "table"); }

  /// Return the number of the entry with a handle.
  Index entry(Index table, Handle handle) const {
    const auto entry = state_.tables[table].now().find_entry(handle);
    if (!entry) {
      refuse(program_.tables[table].name, "there is no entry " + std::to_string(handle),
             "give a handle that adding an entry returned", not_found);
    }
    return *entry;
  }

  /// Refuse a table whose entries are constant.
  void not_constant(Index table) const {
    if (program_.tables[table].is_constant) {
      refuse(program_.tables[table].name, "its entries are constant",
             "change them in the P4 program", failed_precondition);
    }
  }

  /// Check the target of an entry of table `index`. Return it as the result of an entry, and write
  /// the data of its action to `data`.
  Result result(Index index, const Target& target, Words& data) const {
    const Table& table = program_.tables[index];
    if (const auto* call = std::get_if<ActionCall>(&target)) {
      if (table.profile != none) {
        refuse(table.name,
               "its entries refer to the action profile " + program_.profiles[table.profile].name,
               "give a member or a group instead of an action");
      }
      const Index choice = find_action(program_, table.actions, table.name, call->action);
      const Index action = table.actions[choice];
      data = data_of(program_.actions[action], table.name, call->data);
      return {Result::Kind::action, action, choice};
    }
    if (table.profile == none) {
      refuse(table.name, "it has no action profile", "give an action");
    }
    const std::string& name = program_.profiles[table.profile].name;
    if (const auto* member = std::get_if<Member>(&target)) {
      const auto& member_state =
          profile_of(table).members[this->member(table.profile, member->number)];
      if (table.profile_choices[member_state.choice] == none) {
        refuse(table.name,
               "action " + program_.actions[member_state.action].name + " of member " +
                   std::to_string(member->number) + " is not permitted here",
               "give another member");
      }
      return {Result::Kind::member, member->number, none};
    }
    const std::uint32_t number = std::get<Group>(target).number;
    if (!table.with_groups) refuse(table.name, name + " has no groups", "give a member");
    if (profile_of(table).groups[group(table.profile, number)].members.empty()) {
      refuse(table.name, "group " + std::to_string(number) + " is empty",
             "add a member to it first", failed_precondition);
    }
    return {Result::Kind::group, number, none};
  }

  /// Add `by` to the reference count of the member or group to which a result refers. An action has
  /// no reference count.
  void refer(Index table, const Result& result, std::int64_t by) {
    if (result.kind == Result::Kind::action) return;
    ProfileState& profile = change(state_.profiles[program_.tables[table].profile]);
    std::size_t& references = result.kind == Result::Kind::member
                                  ? profile.members[result.index].references
                                  : profile.groups[result.index].references;
    references = static_cast<std::size_t>(static_cast<std::int64_t>(references) + by);
  }

  [[nodiscard]] const ProfileState& profile_of(const Table& table) const {
    return state_.profiles[table.profile].now();
  }
  /// Return the index of the action profile with a name.
  Index profile(const std::string& name) const {
    return find(program_.profiles, name, "action profile");
  }
  /// Return `number` if the profile has a member with this number.
  std::uint32_t member(Index profile, std::uint32_t number) const {
    const auto& all = state_.profiles[profile].now().members;
    if (number >= all.size() || !all[number].used) {
      refuse(program_.profiles[profile].name, "there is no member " + std::to_string(number),
             "give one that was added", not_found);
    }
    return number;
  }
  /// Return `number` if the profile has a group with this number.
  std::uint32_t group(Index profile, std::uint32_t number) const {
    const auto& all = state_.profiles[profile].now().groups;
    if (number >= all.size() || !all[number].used) {
      refuse(program_.profiles[profile].name, "there is no group " + std::to_string(number),
             "give one that was created", not_found);
    }
    return number;
  }

  /// Refuse an index outside an array of `size` cells.
  void within(const std::string& name, std::uint64_t index, std::uint64_t size) const {
    if (index >= size) {
      refuse(name, "there is no index " + std::to_string(index),
             size == 0 ? "the array is empty" : "the last one is " + std::to_string(size - 1),
             out_of_range);
    }
  }

  /// Refuse a table without idle timeouts.
  void timed(Index table) const {
    if (program_.tables[table].with_timeouts) return;
    refuse(program_.tables[table].name, "its entries have no idle timeout",
           "give the table `support_timeout = true` in the P4 program");
  }
  /// Refuse an array that is a direct counter or meter, because its cells have no index.
  template <typename Array>
  void not_direct(const Array& array) const {
    if (array.is_direct) {
      refuse(array.name, "it belongs to the entries of " + program_.tables[array.table].name,
             "give that table and an entry");
    }
  }
  /// Return the index of a table that must have a direct counter.
  Index counted(const std::string& name) const {
    const Index index = table(name);
    if (!program_.tables[index].with_counters) {
      refuse(name, "it has no direct counter", "give it one in the P4 program");
    }
    return index;
  }
  /// Return the index of a table that must have a direct meter.
  Index metered(const std::string& name) const {
    const Index index = table(name);
    if (program_.tables[index].meter == none) {
      refuse(name, "it has no direct meter", "give it one in the P4 program");
    }
    return index;
  }

  /// Check rates, and return a cell of a meter with these rates and full token buckets.
  MeterCell rated(const MeterArray& meter, const std::vector<MeterRate>& rates) const {
    if (!rates.empty() && rates.size() != meter.rates) {
      refuse(meter.name, std::to_string(rates.size()) + " rates",
             "give " + std::to_string(meter.rates) + ", or none, which lets everything pass");
    }
    MeterCell cell;
    for (const MeterRate& rate : rates) {
      if (!std::isfinite(rate.per_us) || rate.per_us < 0 || rate.per_us > 1e12) {
        refuse(meter.name, "not a rate: " + std::to_string(rate.per_us),
               "give packets or bytes per microsecond, from 0 to 1e12");
      }
      if (cell.used > 0 && rate.per_us < cell.rates[cell.used - 1].per_us) {
        refuse(meter.name, "the peak rate is below the committed one",
               "give the committed rate first");
      }
      cell.rates[cell.used++] = {rate.per_us, rate.burst, rate.burst, 0};
    }
    return cell;
  }

 private:
  State& state_;
  const Compiled& program_;
};

}  // namespace nagi::p4
