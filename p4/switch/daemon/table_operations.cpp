// SPDX-License-Identifier: Apache-2.0
//
// Operations on tables and action profiles.
#include "switch/daemon/operation_table.hpp"
#include "switch/daemon/operation_values.hpp"

namespace nagi::p4 {

using nlohmann::json;

namespace {

// Every operation reads and checks its whole request before it changes anything.

json table_add(Control& control, ObjectReader& reader) {
  const std::string table = reader.text("table");
  const std::vector<Match> match = read_match(reader);
  const Target target = read_target(reader);
  const auto priority = read_priority(reader);
  const auto timeout = read_timeout(reader);
  return {{"ok", true}, {"handle", control.table_add(table, match, target, priority, timeout)}};
}

json table_modify(Control& control, ObjectReader& reader) {
  const std::string table = reader.text("table");
  const Handle handle = read_entry(control, table, reader);
  const Target target = read_target(reader);
  const auto timeout = read_timeout(reader);
  control.table_modify(table, handle, target, timeout);
  return {{"ok", true}};
}

json table_read(Control& control, ObjectReader& reader) {
  constexpr std::size_t usual_limit = 1000;
  constexpr std::uint64_t max_limit = 100'000;
  const std::string table = reader.text("table");
  if (reader.has("match") || reader.has("handle")) {
    const Handle handle = read_entry(control, table, reader);
    return {{"ok", true},
            {"entries", json::array({entry_to_json(control.table_entry(table, handle))})},
            {"next", nullptr}};
  }
  const std::uint64_t from = reader.has("from") ? reader.whole("from") : 0;
  const std::size_t limit = reader.has("limit") ? reader.whole("limit", 1, max_limit) : usual_limit;
  const Control::Page page = control.table_entries(table, from, limit);
  json entries = json::array();
  for (const Entry& entry : page.entries) entries.push_back(entry_to_json(entry));
  return {{"ok", true},
          {"entries", std::move(entries)},
          {"next", page.next ? json(*page.next) : json()}};
}

json table_delete(Control& control, ObjectReader& reader) {
  const std::string table = reader.text("table");
  const Handle handle = read_entry(control, table, reader);
  control.table_delete(table, handle);
  return {{"ok", true}};
}

json table_clear(Control& control, ObjectReader& reader) {
  const std::string table = reader.text("table");
  control.table_clear(table);
  return {{"ok", true}};
}

json table_default(Control& control, ObjectReader& reader) {
  const std::string table = reader.text("table");
  if (!reader.has("action") && !reader.has("member") && !reader.has("group") &&
      !reader.has("data")) {
    control.table_default_reset(table);
    return {{"ok", true}};
  }
  const Target target = read_target(reader);
  control.table_default(table, target);
  return {{"ok", true}};
}

json default_read(Control& control, ObjectReader& reader) {
  const Default default_entry = control.table_default_read(reader.text("table"));
  json answer = {{"ok", true},
                 {"is_initial", default_entry.is_initial},
                 {"hits", default_entry.hits},
                 {"misses", default_entry.misses}};
  if (default_entry.target) add_target(answer, *default_entry.target);
  return answer;
}

json member_add(Control& control, ObjectReader& reader) {
  const std::string profile = reader.text("profile");
  const ActionCall call = read_call(reader);
  return {{"ok", true}, {"member", control.member_add(profile, call)}};
}

json member_modify(Control& control, ObjectReader& reader) {
  const std::string profile = reader.text("profile");
  const std::uint32_t member = read_32_bits(reader, "member");
  const ActionCall call = read_call(reader);
  control.member_modify(profile, member, call);
  return {{"ok", true}};
}

json member_delete(Control& control, ObjectReader& reader) {
  const std::string profile = reader.text("profile");
  const std::uint32_t member = read_32_bits(reader, "member");
  control.member_delete(profile, member);
  return {{"ok", true}};
}

json group_create(Control& control, ObjectReader& reader) {
  const std::string profile = reader.text("profile");
  return {{"ok", true}, {"group", control.group_create(profile)}};
}

template <void (Control::*change)(const std::string&, std::uint32_t, std::uint32_t)>
json group_member(Control& control, ObjectReader& reader) {
  const std::string profile = reader.text("profile");
  const std::uint32_t group = read_32_bits(reader, "group");
  const std::uint32_t member = read_32_bits(reader, "member");
  (control.*change)(profile, group, member);
  return {{"ok", true}};
}

json group_delete(Control& control, ObjectReader& reader) {
  const std::string profile = reader.text("profile");
  const std::uint32_t group = read_32_bits(reader, "group");
  control.group_delete(profile, group);
  return {{"ok", true}};
}

json member_read(Control& control, ObjectReader& reader) {
  const std::string profile = reader.text("profile");
  json members = json::array();
  for (const ProfileMember& one :
       control.members(profile, read_optional_32_bits(reader, "member"))) {
    json member = {{"member", one.number}};
    add_call(member, one.call);
    members.push_back(std::move(member));
  }
  return {{"ok", true}, {"members", std::move(members)}};
}

json group_read(Control& control, ObjectReader& reader) {
  const std::string profile = reader.text("profile");
  json groups = json::array();
  for (const ProfileGroup& one : control.groups(profile, read_optional_32_bits(reader, "group"))) {
    groups.push_back({{"group", one.number}, {"members", one.members}});
  }
  return {{"ok", true}, {"groups", std::move(groups)}};
}

}  // namespace

OperationTable table_operations() {
  return {
      {"table_add",
       {table_add,
        {"op", "table", "match", "action", "data", "member", "group", "priority", "timeout_us"}}},
      {"table_modify",
       {table_modify,
        {"op", "table", "handle", "match", "priority", "action", "data", "member", "group",
         "timeout_us"}}},
      {"table_delete", {table_delete, {"op", "table", "handle", "match", "priority"}}},
      {"table_read", {table_read, {"op", "table", "handle", "match", "priority", "from", "limit"}}},
      {"default_read", {default_read, {"op", "table"}}},
      {"table_clear", {table_clear, {"op", "table"}}},
      {"table_default", {table_default, {"op", "table", "action", "data", "member", "group"}}},
      {"member_add", {member_add, {"op", "profile", "action", "data"}}},
      {"member_modify", {member_modify, {"op", "profile", "member", "action", "data"}}},
      {"member_delete", {member_delete, {"op", "profile", "member"}}},
      {"group_create", {group_create, {"op", "profile"}}},
      {"group_add_member",
       {group_member<&Control::group_add_member>, {"op", "profile", "group", "member"}}},
      {"group_remove_member",
       {group_member<&Control::group_remove_member>, {"op", "profile", "group", "member"}}},
      {"group_delete", {group_delete, {"op", "profile", "group"}}},
      {"member_read", {member_read, {"op", "profile", "member"}}},
      {"group_read", {group_read, {"op", "profile", "group"}}}};
}

}  // namespace nagi::p4
