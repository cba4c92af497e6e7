// SPDX-License-Identifier: Apache-2.0
//
// What a controller may do to a program at work. Every operation happens whole or throws InputError
// and changes nothing; the error's code is one of those below, or empty where what is asked is no
// good in itself. Numbers of any width are byte strings, big endian; leading zeros are ignored
// and may be missing, but a number that does not fit its width is refused.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "program/machine.hpp"

namespace nagi::p4 {

constexpr char not_found[] = "not_found";
constexpr char already_exists[] = "already_exists";
constexpr char out_of_range[] = "out_of_range";
constexpr char resource_exhausted[] = "resource_exhausted";
constexpr char failed_precondition[] = "failed_precondition";
constexpr char unsupported[] = "unsupported";

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

struct Entry {
  Handle handle = 0;
  std::vector<Match> match;
  Target target;
  std::optional<std::int32_t> priority;
  std::uint64_t hits = 0;
  std::uint64_t idle_us = 0;                    // since the last hit, or since it was added
  std::optional<std::uint64_t> timeout_us;      // of tables whose entries may have one
  std::optional<Count> count;                   // of a direct counter
  std::optional<std::vector<MeterRate>> rates;  // of a direct meter
};

/// What a miss does, if anything, and how often which was.
struct Default {
  std::optional<Target> target;
  bool is_initial = false;  // the program's own
  std::uint64_t hits = 0, misses = 0;
};

struct ProfileMember {
  std::uint32_t number = 0;
  ActionCall call;
};
struct ProfileGroup {
  std::uint32_t number = 0;
  std::vector<std::uint32_t> members;
};

/// An entry whose idle timeout is over.
struct Expired {
  std::string table;
  Entry entry;
};

/// Copies of a multicast group: one for each port, with egress_rid `rid`.
struct Copies {
  std::uint32_t rid = 0;
  std::vector<Port> ports;
};

/// Where clones of a session go.
struct Mirror {
  std::optional<Port> port;
  std::optional<std::uint32_t> group;
  std::optional<std::uint32_t> max_bytes{};  // what they are cut to
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

  /// The instant of the operations that follow: idle times count by it.
  void set_time(std::uint64_t now_us) { now_us_ = now_us; }

  // Tables. `priority` is for tables with ternary or range keys, which need it: the smaller number
  // wins, among equal ones the entry that was added first. `timeout_us`: of tables with
  // support_timeout, after how long without a hit expired() has the entry; 0: never. Without one an
  // entry has none, or that which it had. It begins anew.
  Handle table_add(const std::string& table, const std::vector<Match>& match, const Target& target,
                   std::optional<std::int32_t> priority = std::nullopt,
                   std::optional<std::uint64_t> timeout_us = std::nullopt);
  /// The entry with this key.
  [[nodiscard]] Handle table_find(const std::string& table, const std::vector<Match>& match,
                                  std::optional<std::int32_t> priority) const;
  /// Entries with a timeout who have not been hit for so long, each once after its last hit.
  [[nodiscard]] std::vector<Expired> expired();
  void table_modify(const std::string& table, Handle handle, const Target& target,
                    std::optional<std::uint64_t> timeout_us = std::nullopt);
  void table_delete(const std::string& table, Handle handle);
  /// All entries but the default one.
  void table_clear(const std::string& table);
  void table_default(const std::string& table, const Target& target);
  /// The program's own.
  void table_default_reset(const std::string& table);
  /// At most `limit` entries, from place `from` on. `next`: where the rest begins, if there is any.
  struct Page {
    std::vector<Entry> entries;
    std::optional<std::uint64_t> next;
  };
  [[nodiscard]] Page table_entries(const std::string& table, std::uint64_t from = 0,
                                   std::size_t limit = SIZE_MAX) const;
  [[nodiscard]] Entry table_entry(const std::string& table, Handle handle) const;
  [[nodiscard]] Default table_default_read(const std::string& table) const;
  [[nodiscard]] std::size_t table_size(const std::string& table) const;

  // Action profiles. Members and groups in use cannot be deleted.
  std::uint32_t member_add(const std::string& profile, const ActionCall& call);
  void member_modify(const std::string& profile, std::uint32_t member, const ActionCall& call);
  void member_delete(const std::string& profile, std::uint32_t member);
  std::uint32_t group_create(const std::string& profile);
  void group_add_member(const std::string& profile, std::uint32_t group, std::uint32_t member);
  void group_remove_member(const std::string& profile, std::uint32_t group, std::uint32_t member);
  void group_delete(const std::string& profile, std::uint32_t group);
  /// One, or all.
  [[nodiscard]] std::vector<ProfileMember> members(
      const std::string& profile, std::optional<std::uint32_t> member = std::nullopt) const;
  [[nodiscard]] std::vector<ProfileGroup> groups(
      const std::string& profile, std::optional<std::uint32_t> group = std::nullopt) const;

  // Registers. Values have as many bytes as the cell's width needs.
  [[nodiscard]] Bytes register_read(const std::string& name, std::uint64_t index) const;
  [[nodiscard]] std::vector<Bytes> register_read_all(const std::string& name) const;
  void register_write(const std::string& name, std::uint64_t index, const Bytes& value);
  /// All cells become 0.
  void register_reset(const std::string& name);

  // Counters: of an array by index, direct ones by the table's entry.
  [[nodiscard]] Count counter_read(const std::string& name, std::uint64_t index) const;
  [[nodiscard]] std::vector<Count> counter_read_all(const std::string& name) const;
  [[nodiscard]] Count direct_counter_read(const std::string& table, Handle handle) const;
  void counter_write(const std::string& name, std::uint64_t index, const Count& count);
  void direct_counter_write(const std::string& table, Handle handle, const Count& count);
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
  [[nodiscard]] std::vector<MeterRate> meter_read(const std::string& name,
                                                  std::uint64_t index) const;
  [[nodiscard]] std::vector<std::vector<MeterRate>> meter_read_all(const std::string& name) const;
  [[nodiscard]] std::vector<MeterRate> direct_meter_read(const std::string& table,
                                                         Handle handle) const;

  // The packet replication engine.
  void mirror_add(std::uint32_t session, const Mirror& mirror);
  void mirror_delete(std::uint32_t session);
  [[nodiscard]] const std::map<std::uint32_t, Mirror>& mirrors() const;
  void multicast_create(std::uint32_t group, const std::vector<Copies>& copies);
  void multicast_delete(std::uint32_t group);
  [[nodiscard]] const std::map<std::uint32_t, std::vector<Copies>>& multicast_groups() const;

  // Value sets of the parser. A value is the concatenation of its fields, without padding.
  void value_set_add(const std::string& set, const Bytes& value);
  void value_set_clear(const std::string& set);
  [[nodiscard]] const std::vector<Bytes>& value_set(const std::string& set) const;

 private:
  State& state_;
  std::uint64_t now_us_ = 0;
};

}  // namespace nagi::p4
