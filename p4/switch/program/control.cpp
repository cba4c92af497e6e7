// SPDX-License-Identifier: Apache-2.0
#include "program/control.hpp"

#include <algorithm>
#include <tuple>

#include "program/operation.hpp"

namespace nagi::p4 {

namespace {

constexpr Port max_ports = 512;
constexpr std::uint32_t max_group = 0xffff;
constexpr std::uint32_t max_session = 0x7fff;
constexpr std::size_t max_copies = 1 << 16;

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

/// Lays one field of an entry's key out.
void put(KeyBuilder& builder, const std::string& table, const Match& match) {
  const KeyField& field = builder.next();
  const std::uint32_t bits = field.field.bits;
  const std::string where = table + ": " + field.name;
  const auto words = [&](const Bytes& bytes) { return words_for(where, bytes, bits); };
  const auto only = [&](bool fits, const char* given) {
    if (!fits) {
      refuse(where, std::string(given) + " for a field that is matched " + kind_name(field.match),
             field.match == MatchKind::exact ? "give a value" : "give what it takes, or a value");
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
      refuse(where, "bits are set behind the prefix", "set them to 0");
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
    refuse("begin", "operations are being collected already", "end them");
  }
  state_.transaction.begin();
}

void Control::commit() { state_.transaction.commit(); }

void Control::roll_back() { state_.transaction.roll_back(); }

namespace {

/// A key of an entry, checked and laid out.
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
    refuse(table.name, "no priority", "give one: of entries that match the smallest wins");
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
    refuse(name, "there is an entry with this key already", "modify or delete that one",
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
  if (timeout_us) changed.set_timeout(*changed.place_of(handle), *timeout_us, now_us_);
  return handle;
}

Handle Control::table_find(const std::string& name, const std::vector<Match>& match,
                           std::optional<std::int32_t> priority) const {
  Operation operation(state_);
  const Index index = operation.table(name);
  const TableState& entries = state_.tables[index].now();
  const Index place = entries.find_same(key_of(state_.program->tables[index], match, priority));
  if (place == none) {
    refuse(name, "there is no entry with this key", "give that of an entry, priority included",
           not_found);
  }
  return entries.handle(place);
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
      // In a transaction the controller may have deleted it.
      if (state_.tables[i].now().place_of(handle)) {
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
  const Index place = operation.entry(index, handle);
  Words data;
  const Result result = operation.result(index, target, data);
  if (timeout_us) operation.timed(index);
  TableState& entries = operation.change(state_.tables[index]);
  operation.refer(index, entries.result(place), -1);
  operation.refer(index, result, 1);
  entries.modify(place, result, data);
  if (timeout_us) entries.set_timeout(place, *timeout_us, now_us_);
}

void Control::table_delete(const std::string& name, Handle handle) {
  Operation operation(state_);
  const Index index = operation.table(name);
  operation.not_constant(index);
  const Index place = operation.entry(index, handle);
  TableState& entries = operation.change(state_.tables[index]);
  operation.refer(index, entries.result(place), -1);
  entries.erase(place);
}

void Control::table_clear(const std::string& name) {
  Operation operation(state_);
  const Index index = operation.table(name);
  operation.not_constant(index);
  TableState& entries = operation.change(state_.tables[index]);
  for (Index place = entries.next_used(0); place != none; place = entries.next_used(place + 1ULL)) {
    operation.refer(index, entries.result(place), -1);
  }
  entries.clear();
}

void Control::table_default(const std::string& name, const Target& target) {
  Operation operation(state_);
  const Index index = operation.table(name);
  const Table& table = state_.program->tables[index];
  if (table.default_is_constant) {
    refuse(name, "its default action is constant", "it stands in the P4 program",
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

std::uint32_t Control::member_add(const std::string& name, const ActionCall& call) {
  Operation operation(state_);
  const Index index = operation.profile(name);
  const Profile& profile = state_.program->profiles[index];
  ProfileState& state = operation.change(state_.profiles[index]);
  const Index choice = place_of(*state_.program, profile.actions, name, call.action);
  const Index action = profile.actions[choice];
  Words data = data_of(state_.program->actions[action], name, call.data);
  auto free = std::find_if(state.members.begin(), state.members.end(),
                           [](const auto& member) { return !member.used; });
  if (free == state.members.end() && state.members.size() >= profile.size) {
    refuse(name, "it is full: " + std::to_string(profile.size) + " members", "delete some",
           resource_exhausted);
  }
  if (free == state.members.end()) free = state.members.emplace(free);
  *free = {true, choice, action, std::move(data), 0};
  return static_cast<std::uint32_t>(free - state.members.begin());
}

void Control::member_modify(const std::string& name, std::uint32_t number, const ActionCall& call) {
  Operation operation(state_);
  const Index index = operation.profile(name);
  const Profile& profile = state_.program->profiles[index];
  operation.member(index, number);
  const Index choice = place_of(*state_.program, profile.actions, name, call.action);
  const Index action = profile.actions[choice];
  Words data = data_of(state_.program->actions[action], name, call.data);
  ProfileState& state = operation.change(state_.profiles[index]);
  state.members[number].choice = choice;
  state.members[number].action = action;
  state.members[number].data = std::move(data);
}

void Control::member_delete(const std::string& name, std::uint32_t number) {
  Operation operation(state_);
  const Index index = operation.profile(name);
  operation.member(index, number);
  ProfileState& state = operation.change(state_.profiles[index]);
  if (state.members[number].references != 0) {
    refuse(name, "member " + std::to_string(number) + " is in use",
           "delete the entries and groups that refer to it first", failed_precondition);
  }
  state.members[number] = {};
}

std::uint32_t Control::group_create(const std::string& name) {
  Operation operation(state_);
  const Index index = operation.profile(name);
  if (state_.program->profiles[index].selector == none) {
    refuse(name, "it has no groups", "use its members");
  }
  ProfileState& state = operation.change(state_.profiles[index]);
  auto free = std::find_if(state.groups.begin(), state.groups.end(),
                           [](const auto& group) { return !group.used; });
  if (free == state.groups.end() && state.groups.size() >= max_copies) {
    refuse(name, "it has " + std::to_string(max_copies) + " groups", "delete some",
           resource_exhausted);
  }
  if (free == state.groups.end()) free = state.groups.emplace(free);
  *free = {true, {}, 0};
  return static_cast<std::uint32_t>(free - state.groups.begin());
}

void Control::group_add_member(const std::string& name, std::uint32_t group, std::uint32_t member) {
  Operation operation(state_);
  const Index index = operation.profile(name);
  operation.group(index, group);
  operation.member(index, member);
  ProfileState& state = operation.change(state_.profiles[index]);
  const auto& members = state.groups[group].members;
  const auto at = std::lower_bound(members.begin(), members.end(), member);
  if (at != members.end() && *at == member) {
    refuse(name, "member " + std::to_string(member) + " is in the group", "add another",
           already_exists);
  }
  const auto place = at - members.begin();
  auto& changed = state.groups[group].members;
  changed.insert(changed.begin() + place, member);
  ++state.members[member].references;
}

void Control::group_remove_member(const std::string& name, std::uint32_t group,
                                  std::uint32_t member) {
  Operation operation(state_);
  const Index index = operation.profile(name);
  operation.group(index, group);
  ProfileState& state = operation.change(state_.profiles[index]);
  const auto& members = state.groups[group].members;
  const auto at = std::find(members.begin(), members.end(), member);
  if (at == members.end()) {
    refuse(name, "member " + std::to_string(member) + " is not in the group",
           "give one of the group's", not_found);
  }
  const auto place = at - members.begin();
  auto& changed = state.groups[group].members;
  changed.erase(changed.begin() + place);
  --state.members[member].references;
}

void Control::group_delete(const std::string& name, std::uint32_t number) {
  Operation operation(state_);
  const Index index = operation.profile(name);
  operation.group(index, number);
  ProfileState& state = operation.change(state_.profiles[index]);
  if (state.groups[number].references != 0) {
    refuse(name, "group " + std::to_string(number) + " is in use",
           "delete the entries that refer to it first", failed_precondition);
  }
  for (const std::uint32_t member : state.groups[number].members) {
    --state.members[member].references;
  }
  state.groups[number] = {};
}

void Control::register_write(const std::string& name, std::uint64_t index, const Bytes& value) {
  Operation operation(state_);
  const Index array = find(state_.program->registers, name, "register");
  const RegisterArray& about = state_.program->registers[array];
  operation.within(name, index, about.size);
  const Words words = words_for(name, value, about.cell.bits);
  const auto at = static_cast<std::ptrdiff_t>(index * about.cell.limbs);
  state_.registers[array].change(state_.transaction, [words, at](Words& cells) {
    std::copy(words.begin(), words.end(), cells.begin() + at);
  });
}

void Control::register_reset(const std::string& name) {
  state_.registers[find(state_.program->registers, name, "register")].change(
      state_.transaction, [](Words& cells) { std::fill(cells.begin(), cells.end(), 0); });
}

void Control::counter_reset(const std::string& name) {
  Operation operation(state_);
  const Index array = find(state_.program->counters, name, "counter");
  const CounterArray& about = state_.program->counters[array];
  const auto zero = [](std::vector<Count>& cells) {
    std::fill(cells.begin(), cells.end(), Count{});
  };
  if (about.is_direct) {
    state_.tables[about.table].change(state_.transaction,
                                      [zero](TableState& entries) { zero(entries.counts()); });
  } else {
    state_.counters[array].change(state_.transaction, zero);
  }
}

void Control::counter_write(const std::string& name, std::uint64_t index, const Count& count) {
  Operation operation(state_);
  const Index array = find(state_.program->counters, name, "counter");
  operation.not_direct(state_.program->counters[array]);
  operation.within(name, index, state_.program->counters[array].size);
  state_.counters[array].change(
      state_.transaction, [index, count](std::vector<Count>& cells) { cells[index] = count; });
}

void Control::direct_counter_write(const std::string& name, Handle handle, const Count& count) {
  Operation operation(state_);
  const Index index = operation.counted(name);
  (void)operation.entry(index, handle);
  state_.tables[index].change(state_.transaction, [handle, count](TableState& entries) {
    // Later in a transaction the entry may have been deleted.
    if (const auto place = entries.place_of(handle)) entries.count(*place) = count;
  });
}

void Control::meter_rates(const std::string& name, std::uint64_t index,
                          const std::vector<MeterRate>& rates) {
  Operation operation(state_);
  const Index array = find(state_.program->meters, name, "meter");
  const MeterArray& about = state_.program->meters[array];
  operation.not_direct(about);
  operation.within(name, index, about.size);
  const MeterCell cell = operation.rated(about, rates);
  state_.meters[array].change(
      state_.transaction, [index, cell](std::vector<MeterCell>& cells) { cells[index] = cell; });
}

void Control::meter_rates_all(const std::string& name, const std::vector<MeterRate>& rates) {
  Operation operation(state_);
  const Index array = find(state_.program->meters, name, "meter");
  const MeterArray& about = state_.program->meters[array];
  operation.not_direct(about);
  const MeterCell cell = operation.rated(about, rates);
  state_.meters[array].change(state_.transaction, [cell](std::vector<MeterCell>& cells) {
    std::fill(cells.begin(), cells.end(), cell);
  });
}

void Control::direct_meter_rates(const std::string& name, Handle handle,
                                 const std::vector<MeterRate>& rates) {
  Operation operation(state_);
  const Index index = operation.metered(name);
  (void)operation.entry(index, handle);
  const MeterCell cell =
      operation.rated(state_.program->meters[state_.program->tables[index].meter], rates);
  state_.tables[index].change(state_.transaction, [handle, cell](TableState& entries) {
    // Later in a transaction the entry may have been deleted.
    if (const auto place = entries.place_of(handle)) entries.meter(*place) = cell;
  });
}

void Control::mirror_add(std::uint32_t session, const Mirror& mirror) {
  const std::string where = "mirror session " + std::to_string(session);
  if (session > max_session) {
    refuse(where, "not a session", "give a number up to " + std::to_string(max_session));
  }
  if (!mirror.port && !mirror.group) {
    refuse(where, "it leads nowhere", "give a port, a multicast group, or both");
  }
  if (mirror.port && *mirror.port >= max_ports) {
    refuse(where, "there is no port " + std::to_string(*mirror.port),
           "ports are numbered up to " + std::to_string(max_ports - 1));
  }
  Operation(state_).change(state_.mirrors)[session] = mirror;
}

void Control::mirror_delete(std::uint32_t session) {
  if (!state_.mirrors.now().contains(session)) {
    refuse("mirror session " + std::to_string(session), "there is no such session",
           "give one that was added", not_found);
  }
  Operation(state_).change(state_.mirrors).erase(session);
}

void Control::multicast_create(std::uint32_t group, const std::vector<Copies>& copies) {
  const std::string where = "multicast group " + std::to_string(group);
  if (group == 0 || group > max_group) {
    refuse(where, "not a group", "give a number from 1 to " + std::to_string(max_group));
  }
  std::size_t count = 0;
  for (const Copies& one : copies) {
    count += one.ports.size();
    if (one.rid > 0xffff) {
      refuse(where, "not a replication id: " + std::to_string(one.rid), "give one up to 65535");
    }
    for (const Port port : one.ports) {
      if (port >= max_ports) {
        refuse(where, "there is no port " + std::to_string(port),
               "ports are numbered up to " + std::to_string(max_ports - 1));
      }
    }
  }
  if (count > max_copies) {
    refuse(where, std::to_string(count) + " copies", "give at most " + std::to_string(max_copies));
  }
  if (state_.groups.now().contains(group)) {
    refuse(where, "it is there already", "delete it first", already_exists);
  }
  Operation(state_).change(state_.groups)[group] = copies;
}

void Control::multicast_delete(std::uint32_t group) {
  if (!state_.groups.now().contains(group)) {
    refuse("multicast group " + std::to_string(group), "there is no such group",
           "give one that was created", not_found);
  }
  Operation(state_).change(state_.groups).erase(group);
}

void Control::value_set_add(const std::string& name, const Bytes& value) {
  Operation operation(state_);
  const Index index = find(state_.program->value_sets, name, "value set");
  const ValueSet& set = state_.program->value_sets[index];
  const Words words = words_for(name, value, set.bits);
  Bytes tidy = bytes_of_words(words.data(), set.bits);
  const auto& values = state_.value_sets[index].now();
  if (std::find(values.begin(), values.end(), tidy) != values.end()) {
    refuse(name, "the value is in it already", "add another", already_exists);
  }
  if (set.size != 0 && values.size() >= set.size) {
    refuse(name, "it is full: " + std::to_string(set.size) + " values", "clear it",
           resource_exhausted);
  }
  operation.change(state_.value_sets[index]).push_back(tidy);
  // Each state that uses the set has its own parts in the key.
  for (std::size_t i = 0; i < state_.program->value_set_uses.size(); ++i) {
    const ValueSetUse& use = state_.program->value_set_uses[i];
    if (use.set != index) continue;
    Words& keys = operation.change(state_.value_set_keys[i]);
    std::size_t at = 8 * tidy.size() - set.bits;
    for (const std::uint32_t bits : use.bits) {
      Words part((bits + 63) / 64);
      read_bits(tidy.data(), at, bits, part.data());
      at += bits;
      keys.insert(keys.end(), part.begin(), part.end());
    }
  }
}

void Control::value_set_clear(const std::string& name) {
  Operation operation(state_);
  const Index index = find(state_.program->value_sets, name, "value set");
  operation.change(state_.value_sets[index]).clear();
  for (std::size_t i = 0; i < state_.program->value_set_uses.size(); ++i) {
    if (state_.program->value_set_uses[i].set != index) continue;
    operation.change(state_.value_set_keys[i]).clear();
  }
}

}  // namespace nagi::p4
