// SPDX-License-Identifier: Apache-2.0
#include "program/control.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "io/input_error.hpp"
#include "program/key.hpp"
#include "program/state.hpp"

namespace nagi::p4 {

namespace {

using Words = std::vector<std::uint64_t>;

constexpr Port max_ports = 512;
constexpr std::uint32_t max_group = 0xffff;
constexpr std::uint32_t max_session = 0x7fff;
constexpr std::size_t max_copies = 1 << 16;

[[noreturn]] void refuse(const std::string& where, const std::string& what,
                         const std::string& cure) {
  throw InputError(where + ": " + what + "; " + cure);
}

template <typename Object>
Index find(const std::vector<Object>& objects, const std::string& name, const char* what) {
  for (Index i = 0; i < objects.size(); ++i) {
    if (objects[i].name == name) return i;
  }
  std::string names;
  for (const Object& object : objects) names += (names.empty() ? "" : ", ") + object.name;
  refuse(name, std::string("there is no such ") + what,
         names.empty() ? "the program has none" : "give one of " + names);
}

Words words_for(const std::string& where, const Bytes& bytes, std::uint32_t bits) {
  Words words = words_of_bytes(bytes, bits);
  if (words.empty()) {
    refuse(where, "a value of more than " + std::to_string(bits) + " bits", "give one that fits");
  }
  return words;
}

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

const char* kind_name(MatchKind kind) {
  constexpr const char* names[] = {"exact", "lpm", "ternary", "range", "valid"};
  return names[static_cast<std::size_t>(kind)];
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

/// The field's words out of a key that was laid out.
Words part_of(const Words& key, const KeyField& field) {
  Words part(field.field.limbs);
  for (std::uint32_t i = 0; i < field.field.limbs; ++i) part[i] = key[field.word + i];
  if (field.field.limbs == 1) part[0] = part[0] >> field.shift & field.field.mask();
  return part;
}

std::uint32_t count_ones(const Words& words) {
  std::uint32_t count = 0;
  for (const std::uint64_t word : words) count += static_cast<std::uint32_t>(std::popcount(word));
  return count;
}

Match match_of(const Key& key, const KeyField& field, std::size_t range_at) {
  const std::uint32_t bits = field.field.bits;
  const auto bytes = [&](const Words& words) { return bytes_of_words(words.data(), bits); };
  if (field.match == MatchKind::range) {
    const auto part = [&](const Words& all) { return bytes_of_words(all.data() + range_at, bits); };
    return Range{part(key.low), part(key.high)};
  }
  const Words value = part_of(key.value, field);
  const Words mask = part_of(key.mask, field);
  if (field.match == MatchKind::lpm) return Prefix{bytes(value), count_ones(mask)};
  if (field.match == MatchKind::ternary) return Ternary{bytes(value), bytes(mask)};
  return Exact{bytes(value)};
}

/// What an action takes, as words one after another.
Words data_of(const Action& action, const std::string& where, const std::vector<Bytes>& given) {
  if (given.size() != action.parameters.size()) {
    std::string names;
    for (const Parameter& one : action.parameters) names += (names.empty() ? "" : ", ") + one.name;
    refuse(where,
           action.name + " takes " + std::to_string(action.parameters.size()) + " values, not " +
               std::to_string(given.size()),
           names.empty() ? "give none" : "give " + names);
  }
  Words data;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Parameter& parameter = action.parameters[i];
    Words words =
        words_for(where + ": " + action.name + ": " + parameter.name, given[i], parameter.bits);
    words.resize(parameter.field.limbs);
    data.insert(data.end(), words.begin(), words.end());
  }
  return data;
}

/// Which one of `allowed` has this name.
Index place_of(const Compiled& program, const std::vector<Index>& allowed, const std::string& where,
               const std::string& name) {
  std::string names;
  for (Index i = 0; i < allowed.size(); ++i) {
    const Action& action = program.actions[allowed[i]];
    if (action.name == name) return i;
    names += (names.empty() ? "" : ", ") + action.name;
  }
  refuse(where, "action " + name + " is none of its own", "give one of " + names);
}

}  // namespace

/// Operations on a State, with what they share.
class Operation {
 public:
  explicit Operation(State& state) : state_(state), program_(*state.program) {}

  /// What the controller may change.
  template <typename Value>
  Value& change(Staged<Value>& staged) const {
    return staged.change(state_.transaction);
  }

  Index table(const std::string& name) const { return find(program_.tables, name, "table"); }

  Index entry(Index table, Handle handle) const {
    const auto place = state_.tables[table].now().place_of(handle);
    if (!place) {
      refuse(program_.tables[table].name, "there is no entry " + std::to_string(handle),
             "give a handle that adding an entry returned");
    }
    return *place;
  }

  void not_constant(Index table) const {
    if (program_.tables[table].is_constant) {
      refuse(program_.tables[table].name, "its entries are constant",
             "they stand in the P4 program");
    }
  }

  /// A target, checked, and the data that goes with it.
  Result result(Index index, const Target& target, Words& data) const {
    const Table& table = program_.tables[index];
    if (const auto* call = std::get_if<ActionCall>(&target)) {
      if (table.profile != none) {
        refuse(table.name,
               "its entries refer to the action profile " + program_.profiles[table.profile].name,
               "give a member or a group instead of an action");
      }
      const Index place = place_of(program_, table.actions, table.name, call->action);
      const Index action = table.actions[place];
      data = data_of(program_.actions[action], table.name, call->data);
      return {Result::What::action, action, place};
    }
    if (table.profile == none) {
      refuse(table.name, "it has no action profile", "give an action");
    }
    const std::string& name = program_.profiles[table.profile].name;
    if (const auto* member = std::get_if<Member>(&target)) {
      const auto& of = profile_of(table).members[this->member(table.profile, member->number)];
      if (table.places[of.choice] == none) {
        refuse(table.name,
               "action " + program_.actions[of.action].name + " of member " +
                   std::to_string(member->number) + " is none of its own",
               "give another member");
      }
      return {Result::What::member, member->number, none};
    }
    const std::uint32_t number = std::get<Group>(target).number;
    if (!table.with_groups) refuse(table.name, name + " has no groups", "give a member");
    if (profile_of(table).groups[group(table.profile, number)].members.empty()) {
      refuse(table.name, "group " + std::to_string(number) + " is empty",
             "add a member to it first");
    }
    return {Result::What::group, number, none};
  }

  /// Counts entries that refer to a member or group.
  void refer(Index table, const Result& result, std::int64_t by) {
    if (result.what == Result::What::action) return;
    ProfileState& profile = change(state_.profiles[program_.tables[table].profile]);
    std::size_t& references = result.what == Result::What::member
                                  ? profile.members[result.index].references
                                  : profile.groups[result.index].references;
    references = static_cast<std::size_t>(static_cast<std::int64_t>(references) + by);
  }

  [[nodiscard]] const ProfileState& profile_of(const Table& table) const {
    return state_.profiles[table.profile].now();
  }
  Index profile(const std::string& name) const {
    return find(program_.profiles, name, "action profile");
  }
  std::uint32_t member(Index profile, std::uint32_t number) const {
    const auto& all = state_.profiles[profile].now().members;
    if (number >= all.size() || !all[number].used) {
      refuse(program_.profiles[profile].name, "there is no member " + std::to_string(number),
             "give one that was added");
    }
    return number;
  }
  std::uint32_t group(Index profile, std::uint32_t number) const {
    const auto& all = state_.profiles[profile].now().groups;
    if (number >= all.size() || !all[number].used) {
      refuse(program_.profiles[profile].name, "there is no group " + std::to_string(number),
             "give one that was created");
    }
    return number;
  }

  void within(const std::string& name, std::uint64_t index, std::uint64_t size) const {
    if (index >= size) {
      refuse(name, "there is no index " + std::to_string(index),
             size == 0 ? "it is empty" : "the last one is " + std::to_string(size - 1));
    }
  }

  /// New rates for a meter's cell.
  MeterCell rated(const MeterArray& meter, const std::vector<MeterRate>& rates) const {
    if (!rates.empty() && rates.size() != meter.rates) {
      refuse(meter.name, std::to_string(rates.size()) + " rates",
             "give " + std::to_string(meter.rates) + ", or none, which lets everything pass");
    }
    MeterCell cell;
    for (const MeterRate& rate : rates) {
      if (!std::isfinite(rate.per_us) || rate.per_us < 0 || rate.per_us > 1e12) {
        refuse(meter.name, "not a rate: " + std::to_string(rate.per_us),
               "give what passes per microsecond, from 0 to 1e12");
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

void Control::begin() {
  if (state_.transaction.is_open()) {
    refuse("begin", "operations are being collected already", "end them");
  }
  state_.transaction.begin();
}

void Control::commit() { state_.transaction.commit(); }

void Control::roll_back() { state_.transaction.roll_back(); }

Handle Control::table_add(const std::string& name, const std::vector<Match>& match,
                          const Target& target, std::optional<std::int32_t> priority) {
  Operation operation(state_);
  const Index index = operation.table(name);
  const Table& table = state_.program->tables[index];
  const TableState& entries = state_.tables[index].now();
  operation.not_constant(index);
  if (table.key.empty()) {
    refuse(name, "it has no key, so it has no entries", "set its default action");
  }
  if (match.size() != table.key.size()) {
    std::string names;
    for (const KeyField& field : table.key) {
      names += (names.empty() ? "" : ", ") + field.name + " (" + kind_name(field.match) + ")";
    }
    refuse(name, std::to_string(match.size()) + " key fields", "give " + names);
  }
  const bool ranked = table.kind == Kind::ternary || table.kind == Kind::range;
  if (ranked && !priority) {
    refuse(name, "no priority", "give one: of entries that match the smallest wins");
  }
  KeyBuilder builder(table);
  for (const Match& one : match) put(builder, name, one);
  Key key = builder.finish(ranked ? *priority : 0);
  if (entries.has(key)) {
    refuse(name, "there is an entry with this key already", "modify or delete that one");
  }
  if (entries.used() >= table.size) {
    refuse(name, "it is full: " + std::to_string(table.size) + " entries",
           "delete some, or give the table a greater size in the P4 program");
  }
  Words data;
  const Result result = operation.result(index, target, data);
  operation.refer(index, result, 1);
  return operation.change(state_.tables[index]).add(std::move(key), result, data);
}

void Control::table_modify(const std::string& name, Handle handle, const Target& target) {
  Operation operation(state_);
  const Index index = operation.table(name);
  operation.not_constant(index);
  const Index place = operation.entry(index, handle);
  Words data;
  const Result result = operation.result(index, target, data);
  TableState& entries = operation.change(state_.tables[index]);
  operation.refer(index, entries.result(place), -1);
  operation.refer(index, result, 1);
  entries.modify(place, result, data);
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
  for (const Handle handle : entries.handles()) {
    operation.refer(index, entries.result(*entries.place_of(handle)), -1);
  }
  entries.clear();
}

void Control::table_default(const std::string& name, const Target& target) {
  Operation operation(state_);
  const Index index = operation.table(name);
  const Table& table = state_.program->tables[index];
  if (table.default_is_constant) {
    refuse(name, "its default action is constant", "it stands in the P4 program");
  }
  Words data;
  const Result result = operation.result(index, target, data);
  if (table.default_action_is_constant && result.index != table.default_action) {
    refuse(name, "its default action is constant", "only its data can change");
  }
  TableState& entries = operation.change(state_.tables[index]);
  operation.refer(index, entries.miss, -1);
  operation.refer(index, result, 1);
  entries.miss = result;
  entries.miss_data = std::move(data);
}

std::vector<Entry> Control::table_entries(const std::string& name) const {
  Operation operation(state_);
  const Index index = operation.table(name);
  const Table& table = state_.program->tables[index];
  const TableState& entries = state_.tables[index].now();
  std::vector<Entry> all;
  for (const Handle handle : entries.handles()) {
    const Index place = *entries.place_of(handle);
    const Key key = entries.key(place);
    Entry entry;
    entry.handle = handle;
    std::size_t range_at = 0;
    for (const KeyField& field : table.key) {
      entry.match.push_back(match_of(key, field, range_at));
      if (field.match == MatchKind::range) range_at += field.field.limbs;
    }
    if (table.kind == Kind::ternary || table.kind == Kind::range) entry.priority = key.priority;
    const Result& result = entries.result(place);
    if (result.what == Result::What::member) {
      entry.target = Member{result.index};
    } else if (result.what == Result::What::group) {
      entry.target = Group{result.index};
    } else {
      const Action& action = state_.program->actions[result.index];
      ActionCall call{action.name, {}};
      for (const Parameter& parameter : action.parameters) {
        const std::uint64_t* from = entries.data(place) + parameter.field.word;
        Words words(from, from + (parameter.bits + 63) / 64);
        if (parameter.bits % 64 != 0) words.back() &= (1ULL << parameter.bits % 64) - 1;
        call.data.push_back(bytes_of_words(words.data(), parameter.bits));
      }
      entry.target = std::move(call);
    }
    all.push_back(std::move(entry));
  }
  return all;
}

std::size_t Control::table_size(const std::string& name) const {
  return state_.tables[Operation(state_).table(name)].now().used();
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
    refuse(name, "it is full: " + std::to_string(profile.size) + " members", "delete some");
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
           "delete the entries and groups that refer to it first");
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
    refuse(name, "it has " + std::to_string(max_copies) + " groups", "delete some");
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
    refuse(name, "member " + std::to_string(member) + " is in the group", "add another");
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
           "give one of the group's");
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
           "delete the entries that refer to it first");
  }
  for (const std::uint32_t member : state.groups[number].members) {
    --state.members[member].references;
  }
  state.groups[number] = {};
}

Bytes Control::register_read(const std::string& name, std::uint64_t index) const {
  const Index array = find(state_.program->registers, name, "register");
  const RegisterArray& about = state_.program->registers[array];
  Operation(state_).within(name, index, about.size);
  return bytes_of_words(state_.registers[array].now().data() + index * about.cell.limbs,
                        about.cell.bits);
}

std::vector<Bytes> Control::register_read_all(const std::string& name) const {
  const Index array = find(state_.program->registers, name, "register");
  std::vector<Bytes> all;
  for (std::uint64_t i = 0; i < state_.program->registers[array].size; ++i) {
    all.push_back(register_read(name, i));
  }
  return all;
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

Count Control::counter_read(const std::string& name, std::uint64_t index) const {
  const Index array = find(state_.program->counters, name, "counter");
  const CounterArray& about = state_.program->counters[array];
  if (about.is_direct) {
    refuse(name, "it counts the entries of " + state_.program->tables[about.table].name,
           "give that table and an entry's handle");
  }
  Operation(state_).within(name, index, about.size);
  return state_.counters[array].now()[index];
}

Count Control::direct_counter_read(const std::string& name, Handle handle) const {
  Operation operation(state_);
  const Index index = operation.table(name);
  if (!state_.program->tables[index].with_counters) {
    refuse(name, "it has no direct counter", "give it one in the P4 program");
  }
  return state_.tables[index].now().count(operation.entry(index, handle));
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

void Control::meter_rates(const std::string& name, std::uint64_t index,
                          const std::vector<MeterRate>& rates) {
  Operation operation(state_);
  const Index array = find(state_.program->meters, name, "meter");
  const MeterArray& about = state_.program->meters[array];
  if (about.is_direct) {
    refuse(name, "it belongs to the entries of a table", "give that table and an entry's handle");
  }
  operation.within(name, index, about.size);
  const MeterCell cell = operation.rated(about, rates);
  state_.meters[array].change(
      state_.transaction, [index, cell](std::vector<MeterCell>& cells) { cells[index] = cell; });
}

void Control::meter_rates_all(const std::string& name, const std::vector<MeterRate>& rates) {
  Operation operation(state_);
  const Index array = find(state_.program->meters, name, "meter");
  const MeterArray& about = state_.program->meters[array];
  if (about.is_direct) {
    refuse(name, "it belongs to the entries of a table", "give that table and an entry's handle");
  }
  const MeterCell cell = operation.rated(about, rates);
  state_.meters[array].change(state_.transaction, [cell](std::vector<MeterCell>& cells) {
    std::fill(cells.begin(), cells.end(), cell);
  });
}

void Control::direct_meter_rates(const std::string& name, Handle handle,
                                 const std::vector<MeterRate>& rates) {
  Operation operation(state_);
  const Index index = operation.table(name);
  const Table& table = state_.program->tables[index];
  if (table.meter == none) {
    refuse(name, "it has no direct meter", "give it one in the P4 program");
  }
  (void)operation.entry(index, handle);
  const MeterCell cell = operation.rated(state_.program->meters[table.meter], rates);
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
           "give one that was added");
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
    refuse(where, "it is there already", "delete it first");
  }
  Operation(state_).change(state_.groups)[group] = copies;
}

void Control::multicast_delete(std::uint32_t group) {
  if (!state_.groups.now().contains(group)) {
    refuse("multicast group " + std::to_string(group), "there is no such group",
           "give one that was created");
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
    refuse(name, "the value is in it already", "add another");
  }
  if (set.size != 0 && values.size() >= set.size) {
    refuse(name, "it is full: " + std::to_string(set.size) + " values", "clear it");
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
