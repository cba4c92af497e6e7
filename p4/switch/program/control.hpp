// SPDX-License-Identifier: Apache-2.0
//
// What a controller may do to a program at work. Every operation happens whole or throws InputError
// and changes nothing. Numbers of any width are byte strings, big endian; leading zeros are ignored
// and may be missing, but a number that does not fit its width is refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "program/machine.hpp"

namespace nagi::p4 {

using Bytes = std::vector<std::uint8_t>;
using Handle = std::uint64_t;

/// How one field of a key is matched. Every field takes Exact; ternary ones (which "optional" ones
/// are, after p4c) also Ternary, Prefix and Any, lpm ones Prefix and Any, range ones Range and Any.
struct Exact {
  Bytes value;
};
struct Prefix {
  Bytes value;  // bits behind the prefix must be 0
  std::uint32_t length = 0;
};
struct Ternary {
  Bytes value;  // bits outside the mask must be 0
  Bytes mask;
};
struct Range {
  Bytes low;
  Bytes high;
};
struct Any {};
using Match = std::variant<Any, Exact, Prefix, Ternary, Range>;

struct ActionCall {
  std::string action;
  std::vector<Bytes> data;
};
struct Member {
  std::uint32_t number = 0;
};
struct Group {
  std::uint32_t number = 0;
};
/// What an entry does: an action, or, where the table has an action profile, a member or a group.
using Target = std::variant<ActionCall, Member, Group>;

struct Entry {
  Handle handle = 0;
  std::vector<Match> match;
  Target target;
  std::optional<std::int32_t> priority;
};

struct Count {
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
};

/// One rate of a meter: what may pass per microsecond (bytes or packets, as the program says), and
/// how much at once.
struct MeterRate {
  double per_us = 0;
  std::uint64_t burst = 0;
};

/// Copies of a multicast group: one for each port, with egress_rid `rid`.
struct Copies {
  std::uint32_t rid = 0;
  std::vector<Port> ports;
};

struct Mirror {
  std::optional<Port> port;
  std::optional<std::uint32_t> group;
};

class Control {
 public:
  explicit Control(State& state) : state_(state) {}
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  // From begin() on operations are collected: packets meet none of them until commit(), and
  // roll_back() makes all as it was. Packets may pass in between.
  void begin();
  void commit();
  void roll_back();

  // Tables. `priority` is for tables with ternary or range keys, which need it: the smaller number
  // wins, among equal ones the entry that was added first.
  Handle table_add(const std::string& table, const std::vector<Match>& match, const Target& target,
                   std::optional<std::int32_t> priority = std::nullopt);
  void table_modify(const std::string& table, Handle handle, const Target& target);
  void table_delete(const std::string& table, Handle handle);
  /// All entries but the default one.
  void table_clear(const std::string& table);
  void table_default(const std::string& table, const Target& target);
  [[nodiscard]] std::vector<Entry> table_entries(const std::string& table) const;
  [[nodiscard]] std::size_t table_size(const std::string& table) const;

  // Action profiles. Members and groups in use cannot be deleted.
  std::uint32_t member_add(const std::string& profile, const ActionCall& call);
  void member_modify(const std::string& profile, std::uint32_t member, const ActionCall& call);
  void member_delete(const std::string& profile, std::uint32_t member);
  std::uint32_t group_create(const std::string& profile);
  void group_add_member(const std::string& profile, std::uint32_t group, std::uint32_t member);
  void group_remove_member(const std::string& profile, std::uint32_t group, std::uint32_t member);
  void group_delete(const std::string& profile, std::uint32_t group);

  // Registers. Values have as many bytes as the cell's width needs.
  [[nodiscard]] Bytes register_read(const std::string& name, std::uint64_t index) const;
  [[nodiscard]] std::vector<Bytes> register_read_all(const std::string& name) const;
  void register_write(const std::string& name, std::uint64_t index, const Bytes& value);
  /// All cells become 0.
  void register_reset(const std::string& name);

  // Counters: of an array by index, direct ones by the table's entry.
  [[nodiscard]] Count counter_read(const std::string& name, std::uint64_t index) const;
  [[nodiscard]] Count direct_counter_read(const std::string& table, Handle handle) const;
  /// All cells become 0. `name`: a counter array, or a direct counter.
  void counter_reset(const std::string& name);

  // Meters (RFC 2698): two rates, the committed one first. No rates: everything is green, which is
  // how meters begin.
  void meter_rates(const std::string& name, std::uint64_t index,
                   const std::vector<MeterRate>& rates);
  /// All cells of the array.
  void meter_rates_all(const std::string& name, const std::vector<MeterRate>& rates);
  void direct_meter_rates(const std::string& table, Handle handle,
                          const std::vector<MeterRate>& rates);

  // The packet replication engine.
  void mirror_add(std::uint32_t session, const Mirror& mirror);
  void mirror_delete(std::uint32_t session);
  void multicast_create(std::uint32_t group, const std::vector<Copies>& copies);
  void multicast_delete(std::uint32_t group);

  // Value sets of the parser. A value is the concatenation of its fields, without padding.
  void value_set_add(const std::string& set, const Bytes& value);
  void value_set_clear(const std::string& set);

 private:
  State& state_;
};

}  // namespace nagi::p4
