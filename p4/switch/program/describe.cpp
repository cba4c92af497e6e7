// SPDX-License-Identifier: Apache-2.0
#include "program/compiled.hpp"

namespace nagi::p4 {

Description description_of(const Compiled& program) {
  Description all;
  constexpr const char* kinds[] = {"exact", "lpm", "ternary", "range", "valid"};
  for (const Table& table : program.tables) {
    DescribedTable one;
    one.name = table.name;
    for (const KeyField& field : table.key) {
      one.key.push_back(
          {field.name, field.field.bits, kinds[static_cast<std::size_t>(field.match)]});
    }
    for (const Index action : table.actions) one.actions.push_back(program.actions[action].name);
    one.size = table.size;
    if (table.profile != none) one.profile = program.profiles[table.profile].name;
    one.with_groups = table.with_groups;
    one.is_constant = table.is_constant;
    one.is_hidden = table.is_hidden;
    one.has_counters = table.with_counters;
    one.has_timeouts = table.with_timeouts;
    if (table.meter != none) one.meter = program.meters[table.meter].name;
    all.tables.push_back(std::move(one));
  }
  for (const auto& [id, index] : program.action_ids) {
    const Action& action = program.actions[index];
    DescribedAction one{action.name, {}};
    for (const Parameter& parameter : action.parameters) {
      one.parameters.push_back({parameter.name, parameter.bits, ""});
    }
    all.actions.push_back(std::move(one));
  }
  const auto table_name = [&](Index table) {
    return table == none ? std::string() : program.tables[table].name;
  };
  for (const RegisterArray& array : program.registers) {
    all.registers.push_back({array.name, array.size, array.cell.bits, false, "", false});
  }
  for (const CounterArray& array : program.counters) {
    all.counters.push_back(
        {array.name, array.size, 0, array.is_direct, table_name(array.table), false});
  }
  for (const MeterArray& array : program.meters) {
    all.meters.push_back(
        {array.name, array.size, 0, array.is_direct, table_name(array.table), array.bytes});
  }
  for (const ValueSet& set : program.value_sets) {
    all.value_sets.push_back({set.name, set.size, set.bits, false, "", false});
  }
  for (const Profile& profile : program.profiles) {
    all.profiles.push_back({profile.name, profile.size, 0, false, "", false});
  }
  for (const std::uint64_t id : program.learn_order) {
    const LearnList& list = program.learn_lists.at(id);
    DescribedDigest one{list.id, list.name, {}};
    for (std::size_t i = 0; i < list.fields.size(); ++i) {
      one.fields.push_back({list.names[i], list.fields[i].bits, ""});
    }
    all.digests.push_back(std::move(one));
  }
  all.notices = program.notices;
  all.headers = program.headers.size();
  all.parser_states = program.states.size();
  return all;
}
}  // namespace nagi::p4
