// SPDX-License-Identifier: Apache-2.0
//
// The operations of a controller that read: values that a controller can write, and counts of
// packets.
#include <algorithm>
#include <bit>
#include <utility>

#include "program/control.hpp"
#include "program/operation.hpp"

namespace nagi::p4 {

namespace {

/// Return the words of a field in a key.
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

/// Convert the data words of an action to a call with values of parameters.
ActionCall call_of(const Action& action, const std::uint64_t* data) {
  ActionCall call{action.name, {}};
  for (const Parameter& parameter : action.parameters) {
    const std::uint64_t* from = data + parameter.field.word;
    Words words(from, from + (parameter.bits + 63) / 64);
    if (parameter.bits % 64 != 0) words.back() &= (1ULL << parameter.bits % 64) - 1;
    call.data.push_back(bytes_of_words(words.data(), parameter.bits));
  }
  return call;
}

Target target_of(const Compiled& program, const Result& result, const std::uint64_t* data) {
  if (result.kind == Result::Kind::member) return Member{result.index};
  if (result.kind == Result::Kind::group) return Group{result.index};
  return call_of(program.actions[result.index], data);
}

std::vector<MeterRate> rates_of(const MeterCell& cell) {
  std::vector<MeterRate> rates;
  for (std::uint32_t i = 0; i < cell.used; ++i) {
    rates.push_back({cell.rates[i].per_us, cell.rates[i].burst});
  }
  return rates;
}

Entry entry_of(const Compiled& program, const Table& table, const TableState& entries, Index number,
               std::uint64_t now_us) {
  const Key key = entries.key(number);
  const Usage& usage = entries.usage(number);
  Entry entry;
  entry.handle = entries.handle(number);
  std::size_t range_at = 0;
  for (const KeyField& field : table.key) {
    entry.match.push_back(match_of(key, field, range_at));
    if (field.match == MatchKind::range) range_at += field.field.limbs;
  }
  if (table.kind == Kind::ternary || table.kind == Kind::range) entry.priority = key.priority;
  entry.target = target_of(program, entries.result(number), entries.data(number));
  entry.hits = usage.hits;
  entry.idle_us = now_us - std::min(now_us, usage.last_us);
  if (table.with_timeouts) entry.timeout_us = usage.timeout_us;
  if (table.with_counters) entry.count = entries.count(number);
  if (table.meter != none) entry.rates = rates_of(entries.meter(number));
  return entry;
}

template <typename Read>
auto read_all(std::uint64_t size, const Read& read) {
  std::vector<decltype(read(0))> all;
  all.reserve(size);
  for (std::uint64_t i = 0; i < size; ++i) all.push_back(read(i));
  return all;
}

}  // namespace

Control::Page Control::table_entries(const std::string& name, std::uint64_t from,
                                     std::size_t limit) const {
  const Index index = Operation(state_).table(name);
  const TableState& entries = state_.tables[index].now();
  Page page;
  Index number = entries.next_used(from);
  for (; number != none && page.entries.size() < limit; number = entries.next_used(number + 1ULL)) {
    page.entries.push_back(
        entry_of(*state_.program, state_.program->tables[index], entries, number, now_us_));
  }
  if (number != none) page.next = number;
  return page;
}

Entry Control::table_entry(const std::string& name, Handle handle) const {
  Operation operation(state_);
  const Index index = operation.table(name);
  return entry_of(*state_.program, state_.program->tables[index], state_.tables[index].now(),
                  operation.entry(index, handle), now_us_);
}

Default Control::table_default_read(const std::string& name) const {
  const Index index = Operation(state_).table(name);
  const TableState& entries = state_.tables[index].now();
  const TableState& live = state_.tables[index].live;  // hits and misses count only here
  Default answer;
  answer.hits = live.hits;
  answer.misses = live.misses;
  answer.is_initial =
      std::pair(entries.miss, entries.miss_data) == initial_miss(state_.program->tables[index]);
  if (entries.miss.kind != Result::Kind::action || entries.miss.index != none) {
    answer.target = target_of(*state_.program, entries.miss, entries.miss_data.data());
  }
  return answer;
}

std::size_t Control::table_size(const std::string& name) const {
  return state_.tables[Operation(state_).table(name)].now().used();
}

std::vector<ProfileMember> Control::members(const std::string& name,
                                            std::optional<std::uint32_t> member) const {
  Operation operation(state_);
  const Index index = operation.profile(name);
  const auto& all = state_.profiles[index].now().members;
  if (member) (void)operation.member(index, *member);
  std::vector<ProfileMember> answer;
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    if (!all[i].used || (member && i != *member)) continue;
    answer.push_back({i, call_of(state_.program->actions[all[i].action], all[i].data.data())});
  }
  return answer;
}

std::vector<ProfileGroup> Control::groups(const std::string& name,
                                          std::optional<std::uint32_t> group) const {
  Operation operation(state_);
  const Index index = operation.profile(name);
  const auto& all = state_.profiles[index].now().groups;
  if (group) (void)operation.group(index, *group);
  std::vector<ProfileGroup> answer;
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    if (all[i].used && (!group || i == *group)) answer.push_back({i, all[i].members});
  }
  return answer;
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
  return read_all(state_.program->registers[array].size,
                  [&](std::uint64_t i) { return register_read(name, i); });
}

Count Control::counter_read(const std::string& name, std::uint64_t index) const {
  Operation operation(state_);
  const Index array = find(state_.program->counters, name, "counter");
  operation.not_direct(state_.program->counters[array]);
  operation.within(name, index, state_.program->counters[array].size);
  return state_.counters[array].now()[index];
}

std::vector<Count> Control::counter_read_all(const std::string& name) const {
  const Index array = find(state_.program->counters, name, "counter");
  Operation(state_).not_direct(state_.program->counters[array]);
  return state_.counters[array].now();
}

Count Control::direct_counter_read(const std::string& name, Handle handle) const {
  Operation operation(state_);
  const Index index = operation.counted(name);
  return state_.tables[index].now().count(operation.entry(index, handle));
}

std::vector<MeterRate> Control::meter_read(const std::string& name, std::uint64_t index) const {
  Operation operation(state_);
  const Index array = find(state_.program->meters, name, "meter");
  operation.not_direct(state_.program->meters[array]);
  operation.within(name, index, state_.program->meters[array].size);
  return rates_of(state_.meters[array].now()[index]);
}

std::vector<std::vector<MeterRate>> Control::meter_read_all(const std::string& name) const {
  const Index array = find(state_.program->meters, name, "meter");
  Operation(state_).not_direct(state_.program->meters[array]);
  return read_all(state_.program->meters[array].size,
                  [&](std::uint64_t i) { return rates_of(state_.meters[array].now()[i]); });
}

std::vector<MeterRate> Control::direct_meter_read(const std::string& name, Handle handle) const {
  Operation operation(state_);
  const Index index = operation.metered(name);
  return rates_of(state_.tables[index].now().meter(operation.entry(index, handle)));
}

const std::map<std::uint32_t, Mirror>& Control::mirrors() const { return state_.mirrors.now(); }

const std::map<std::uint32_t, std::vector<Copies>>& Control::multicast_groups() const {
  return state_.groups.now();
}

const std::vector<Bytes>& Control::value_set(const std::string& name) const {
  return state_.value_sets[find(state_.program->value_sets, name, "value set")].now();
}

}  // namespace nagi::p4
