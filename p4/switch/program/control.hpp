// SPDX-License-Identifier: Apache-2.0
//
// The operations of a controller on a running program. Every operation either succeeds, or throws
// InputError and changes nothing. The code of the error is one of the codes below, or empty if the
// request itself is invalid. Numbers are big-endian bytes of any length. Leading zeros are ignored;
// a number that does not fit the width of its field is refused.
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

/// The match of one key field. Every field accepts Exact; ternary fields (p4c compiles "optional"
/// to ternary) also accept Ternary, Prefix and Any, lpm fields Prefix and Any, range fields Range
/// and Any.
struct Exact {
  Bytes value;
};
struct Prefix {
  Bytes value;  // bits after the prefix must be 0
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
/// The target of an entry: an action; or a member or group if the table has an action profile.
using Target = std::variant<ActionCall, Member, Group>;

struct Count {
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
};

/// One rate of a meter: bytes or packets per microsecond, as the program declares, and the burst
/// size.
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
  std::uint64_t idle_us = 0;                    // time since the last hit, or since the addition
  std::optional<std::uint64_t> timeout_us;      // only in tables with idle timeouts
  std::optional<Count> count;                   // only with a direct counter
  std::optional<std::vector<MeterRate>> rates;  // only with a direct meter
};

/// The default entry of a table, and the counts of the table.
struct Default {
  std::optional<Target> target;  // nothing if the table has no default action
  bool is_initial = false;       // whether it is the default entry that the program declares
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

/// An entry whose idle timeout has expired.
struct Expired {
  std::string table;
  Entry entry;
};

/// Copies of a multicast group: one per port, with egress_rid `rid`.
struct Copies {
  std::uint32_t rid = 0;
  std::vector<Port> ports;
};

/// A clone session: where its clones go.
struct Mirror {
  std::optional<Port> port;
  std::optional<std::uint32_t> group;
  std::optional<std::uint32_t> max_bytes{};  // length to which clones are truncated
};

class Control {
 public:
  explicit Control(State& state) : state_(state) {}
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  // begin() opens a transaction. Packets, which may pass in the meantime, do not see the changes of
  // the following operations before commit(). roll_back() undoes the operations.
  void begin();
  void commit();
  void roll_back();

  /// Set the present time for the following operations, which need it for idle times.
  void set_time(std::uint64_t now_us) { now_us_ = now_us; }

  // Operations on tables. Tables with ternary or range fields need `priority`: the entry with the
  // smaller number wins; among equal numbers, the entry that was added first. `timeout_us` is only
  // for tables with support_timeout: expired() returns an entry that no packet has hit for this
  // time; 0 disables the timeout. Without `timeout_us`, a new entry has no timeout, and
  // table_modify() does not change the timeout. Setting a timeout restarts it.
  Handle table_add(const std::string& table, const std::vector<Match>& match, const Target& target,
                   std::optional<std::int32_t> priority = std::nullopt,
                   std::optional<std::uint64_t> timeout_us = std::nullopt);
  /// Return the handle of the entry with a key.
  [[nodiscard]] Handle table_find(const std::string& table, const std::vector<Match>& match,
                                  std::optional<std::int32_t> priority) const;
  /// Return the entries that have expired and were not returned since their last hit.
  [[nodiscard]] std::vector<Expired> expired();
  void table_modify(const std::string& table, Handle handle, const Target& target,
                    std::optional<std::uint64_t> timeout_us = std::nullopt);
  void table_delete(const std::string& table, Handle handle);
  /// Delete all entries, but not the default entry.
  void table_clear(const std::string& table);
  void table_default(const std::string& table, const Target& target);
  /// Restore the default entry that the program declares.
  void table_default_reset(const std::string& table);
  /// A part of the entries of a table. `next` is the position of the next entry, if there are more.
  struct Page {
    std::vector<Entry> entries;
    std::optional<std::uint64_t> next;
  };
  /// Return at most `limit` entries, beginning at position `from`.
  [[nodiscard]] Page table_entries(const std::string& table, std::uint64_t from = 0,
                                   std::size_t limit = SIZE_MAX) const;
  [[nodiscard]] Entry table_entry(const std::string& table, Handle handle) const;
  [[nodiscard]] Default table_default_read(const std::string& table) const;
  [[nodiscard]] std::size_t table_size(const std::string& table) const;

  // Operations on action profiles. Members and groups in use cannot be deleted.
  std::uint32_t member_add(const std::string& profile, const ActionCall& call);
  void member_modify(const std::string& profile, std::uint32_t member, const ActionCall& call);
  void member_delete(const std::string& profile, std::uint32_t member);
  std::uint32_t group_create(const std::string& profile);
  void group_add_member(const std::string& profile, std::uint32_t group, std::uint32_t member);
  void group_remove_member(const std::string& profile, std::uint32_t group, std::uint32_t member);
  void group_delete(const std::string& profile, std::uint32_t group);
  /// Return the member with a number, or all members if no number is given. groups() likewise.
  [[nodiscard]] std::vector<ProfileMember> members(
      const std::string& profile, std::optional<std::uint32_t> member = std::nullopt) const;
  [[nodiscard]] std::vector<ProfileGroup> groups(
      const std::string& profile, std::optional<std::uint32_t> group = std::nullopt) const;

  // Operations on registers. Values have as many bytes as the cell's width needs.
  [[nodiscard]] Bytes register_read(const std::string& name, std::uint64_t index) const;
  [[nodiscard]] std::vector<Bytes> register_read_all(const std::string& name) const;
  void register_write(const std::string& name, std::uint64_t index, const Bytes& value);
  /// Set all cells to 0.
  void register_reset(const std::string& name);

  // Operations on counters. Cells of arrays are named by index, direct counters by table and entry.
  [[nodiscard]] Count counter_read(const std::string& name, std::uint64_t index) const;
  [[nodiscard]] std::vector<Count> counter_read_all(const std::string& name) const;
  [[nodiscard]] Count direct_counter_read(const std::string& table, Handle handle) const;
  void counter_write(const std::string& name, std::uint64_t index, const Count& count);
  void direct_counter_write(const std::string& table, Handle handle, const Count& count);
  /// Set all cells to 0. `name` is a counter array or a direct counter.
  void counter_reset(const std::string& name);

  // Operations on meters (RFC 2698). There are two rates, the committed rate first. Without rates,
  // as at the start, every packet is green.
  void meter_rates(const std::string& name, std::uint64_t index,
                   const std::vector<MeterRate>& rates);
  /// Set the rates of all cells of an array.
  void meter_rates_all(const std::string& name, const std::vector<MeterRate>& rates);
  void direct_meter_rates(const std::string& table, Handle handle,
                          const std::vector<MeterRate>& rates);
  [[nodiscard]] std::vector<MeterRate> meter_read(const std::string& name,
                                                  std::uint64_t index) const;
  [[nodiscard]] std::vector<std::vector<MeterRate>> meter_read_all(const std::string& name) const;
  [[nodiscard]] std::vector<MeterRate> direct_meter_read(const std::string& table,
                                                         Handle handle) const;

  // Operations on the packet replication engine.
  void mirror_add(std::uint32_t session, const Mirror& mirror);
  void mirror_delete(std::uint32_t session);
  [[nodiscard]] const std::map<std::uint32_t, Mirror>& mirrors() const;
  void multicast_create(std::uint32_t group, const std::vector<Copies>& copies);
  void multicast_delete(std::uint32_t group);
  [[nodiscard]] const std::map<std::uint32_t, std::vector<Copies>>& multicast_groups() const;

  // Operations on value sets of the parser. A value is the concatenation of its fields, without
  // padding.
  void value_set_add(const std::string& set, const Bytes& value);
  void value_set_clear(const std::string& set);
  [[nodiscard]] const std::vector<Bytes>& value_set(const std::string& set) const;

 private:
  State& state_;
  std::uint64_t now_us_ = 0;
};

}  // namespace nagi::p4
