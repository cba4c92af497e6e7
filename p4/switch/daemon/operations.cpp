// SPDX-License-Identifier: Apache-2.0
#include "switch/daemon/operations.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>

namespace nagi::p4 {

namespace {

using nlohmann::json;

constexpr std::uint64_t most_32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t max_bits = 4096;  // of a prefix: more than any field has
constexpr std::size_t max_digits = 4096;

// --- numbers ------------------------------------------------------------------------------------

Bytes bytes_of(std::uint64_t number) {
  Bytes bytes;
  for (int shift = 56; shift >= 0; shift -= 8) {
    const auto byte = static_cast<std::uint8_t>(number >> shift);
    if (byte != 0 || !bytes.empty() || shift == 0) bytes.push_back(byte);
  }
  return bytes;
}

std::optional<Bytes> hexadecimal(std::string_view digits, std::size_t longest = max_digits) {
  if (digits.empty() || digits.size() > longest) return std::nullopt;
  Bytes bytes;
  // An odd number of digits: the first stands alone.
  for (std::size_t at = 0; at < digits.size();) {
    const std::size_t length = (digits.size() - at) % 2 == 0 ? 2 : 1;
    std::uint8_t byte = 0;
    const char* end = digits.data() + at + length;
    const auto read = std::from_chars(digits.data() + at, end, byte, 16);
    if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
    bytes.push_back(byte);
    at += length;
  }
  return bytes;
}

std::optional<Bytes> ethernet_address(std::string_view text) {
  constexpr std::size_t length = 17;
  if (text.size() != length) return std::nullopt;
  Bytes bytes;
  for (std::size_t at = 0; at < length; at += 3) {
    const auto byte = hexadecimal(text.substr(at, 2));
    if (!byte || byte->size() != 1 || (at + 2 < length && text[at + 2] != ':')) return std::nullopt;
    bytes.push_back(byte->front());
  }
  return bytes;
}

std::optional<Bytes> ip_address(const std::string& text) {
  std::array<std::uint8_t, 16> bytes{};
  if (inet_pton(AF_INET, text.c_str(), bytes.data()) == 1) {
    return Bytes(bytes.begin(), bytes.begin() + 4);
  }
  if (inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1) {
    return Bytes(bytes.begin(), bytes.end());
  }
  return std::nullopt;
}

std::optional<Bytes> number_in(const std::string& text) {
  if (text.starts_with("0x") || text.starts_with("0X")) {
    return hexadecimal(std::string_view(text).substr(2));
  }
  if (auto address = ethernet_address(text)) return address;
  return ip_address(text);
}

bool is_natural(const json& value) {
  return value.is_number_unsigned() ||
         (value.is_number_integer() && value.get<std::int64_t>() >= 0);
}

/// `where`: makes the place of the value, which takes longer than to read it.
template <class Where>
Bytes number(const json& value, const Where& where) {
  if (is_natural(value)) return bytes_of(value.get<std::uint64_t>());
  if (value.is_boolean()) return bytes_of(value.get<bool>() ? 1 : 0);
  if (value.is_string()) {
    if (auto bytes = number_in(value.get_ref<const std::string&>())) return *bytes;
  }
  throw ConfigError(where(), "no number: " + shown(value),
                    R"(write an integer from 0 on, "0x...", or an address: "10.0.0.1", )"
                    R"("2001:db8::1", "02:00:00:00:00:01")");
}

std::uint32_t small(const ObjectReader& reader, const std::string& key) {
  return static_cast<std::uint32_t>(reader.whole(key, 0, most_32));
}

std::optional<std::uint32_t> read_optional(const ObjectReader& reader, const std::string& key) {
  if (!reader.has(key)) return std::nullopt;
  return small(reader, key);
}

// --- entries ------------------------------------------------------------------------------------

template <class Where>
Match match_text(const std::string& text, const json& value, const Where& where) {
  const auto slash = text.find('/');
  if (slash == std::string::npos) return Exact{number(value, where)};
  const auto bytes = number_in(text.substr(0, slash));
  std::uint32_t length = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data() + slash + 1, end, length);
  if (!bytes || read.ec != std::errc() || read.ptr != end || length > max_bits) {
    throw ConfigError(where(), "no prefix: " + shown(text), R"(write it as "10.0.0.0/8")");
  }
  return Prefix{*bytes, length};
}

Match match_object(ObjectReader reader) {
  reader.only({"value", "prefix", "mask", "low", "high"});
  const auto at = [&](const char* key) {
    return number(reader.any(key), [&] { return reader.at(key); });
  };
  if (reader.has("low") || reader.has("high")) {
    reader.only({"low", "high"});
    return Range{at("low"), at("high")};
  }
  if (reader.has("prefix")) {
    reader.only({"value", "prefix"});
    return Prefix{at("value"), static_cast<std::uint32_t>(reader.whole("prefix", 0, max_bits))};
  }
  if (reader.has("mask")) return Ternary{at("value"), at("mask")};
  return Exact{at("value")};
}

std::vector<Match> read_match(ObjectReader& reader) {
  std::vector<Match> all;
  const json& list = reader.array("match");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const json& value = list[i];
    const auto where = [&] { return reader.at("match") / i; };
    if (value.is_null()) {
      all.emplace_back(Any{});
    } else if (value.is_object()) {
      all.push_back(match_object({value, where()}));
    } else if (value.is_string()) {
      all.push_back(match_text(value.get_ref<const std::string&>(), value, where));
    } else {
      all.emplace_back(Exact{number(value, where)});
    }
  }
  return all;
}

ActionCall read_call(ObjectReader& reader) {
  ActionCall call{reader.text("action"), {}};
  if (!reader.has("data")) return call;
  const json& data = reader.array("data");
  for (std::size_t i = 0; i < data.size(); ++i) {
    call.data.push_back(number(data[i], [&] { return reader.at("data") / i; }));
  }
  return call;
}

Target read_target(ObjectReader& reader) {
  const int given =
      int{reader.has("action")} + int{reader.has("member")} + int{reader.has("group")};
  if (given > 1) {
    throw ConfigError(reader.here(), "more than one of \"action\", \"member\" and \"group\"",
                      "give one of them");
  }
  if (reader.has("data") && !reader.has("action")) {
    throw ConfigError(reader.at("data"), "data without an action", "give \"action\" too");
  }
  if (reader.has("member")) return Member{small(reader, "member")};
  if (reader.has("group")) return Group{small(reader, "group")};
  return read_call(reader);
}

std::optional<std::int32_t> read_priority(ObjectReader& reader) {
  if (!reader.has("priority") || reader.any("priority").is_null()) return std::nullopt;
  return static_cast<std::int32_t>(
      reader.whole("priority", 0, std::numeric_limits<std::int32_t>::max()));
}

std::vector<MeterRate> read_rates(ObjectReader& reader) {
  std::vector<MeterRate> rates;
  const json& list = reader.array("rates");
  for (std::size_t i = 0; i < list.size(); ++i) {
    ObjectReader rate(list[i], reader.at("rates") / i);
    rate.only({"per_us", "burst"});
    rates.push_back({rate.number("per_us", {0, 1e9}), rate.whole("burst")});
  }
  return rates;
}

std::vector<Copies> read_copies(ObjectReader& reader) {
  std::vector<Copies> all;
  const json& list = reader.array("copies");
  for (std::size_t i = 0; i < list.size(); ++i) {
    ObjectReader item(list[i], reader.at("copies") / i);
    item.only({"rid", "ports"});
    Copies copies;
    if (item.has("rid")) copies.rid = static_cast<std::uint32_t>(item.whole("rid", 0, 65535));
    const json& ports = item.array("ports");
    for (std::size_t port = 0; port < ports.size(); ++port) {
      const json& value = ports[port];
      if (!is_natural(value) || value.get<std::uint64_t>() > 511) {
        throw ConfigError(item.at("ports") / port, "no port: " + shown(value),
                          "write a whole number from 0 to 511");
      }
      copies.ports.push_back(value.get<Port>());
    }
    all.push_back(std::move(copies));
  }
  return all;
}

/// The entry that a request names, by handle or by key.
Handle read_entry(const Control& control, const std::string& table, ObjectReader& reader) {
  if (!reader.has("match")) return reader.whole("handle");
  if (reader.has("handle")) {
    throw ConfigError(reader.at("handle"), "an entry by handle and by key",
                      "give \"handle\" or \"match\"");
  }
  const std::vector<Match> match = read_match(reader);
  return control.table_find(table, match, read_priority(reader));
}

std::optional<std::uint64_t> read_timeout(ObjectReader& reader) {
  constexpr std::uint64_t max_timeout_us = 1ULL << 53;
  if (!reader.has("timeout_us")) return std::nullopt;
  return reader.whole("timeout_us", 0, max_timeout_us);
}

// --- answers ------------------------------------------------------------------------------------

json match_to_json(const Match& match) {
  if (const auto* exact = std::get_if<Exact>(&match)) return number_to_json(exact->value);
  if (const auto* prefix = std::get_if<Prefix>(&match)) {
    return {{"value", number_to_json(prefix->value)}, {"prefix", prefix->length}};
  }
  if (const auto* ternary = std::get_if<Ternary>(&match)) {
    return {{"value", number_to_json(ternary->value)}, {"mask", number_to_json(ternary->mask)}};
  }
  if (const auto* range = std::get_if<Range>(&match)) {
    return {{"low", number_to_json(range->low)}, {"high", number_to_json(range->high)}};
  }
  return nullptr;
}

void add_call(json& answer, const ActionCall& call) {
  json data = json::array();
  for (const Bytes& value : call.data) data.push_back(number_to_json(value));
  answer["action"] = call.action;
  answer["data"] = std::move(data);
}

void add_target(json& answer, const Target& target) {
  if (const auto* call = std::get_if<ActionCall>(&target)) {
    add_call(answer, *call);
  } else if (const auto* member = std::get_if<Member>(&target)) {
    answer["member"] = member->number;
  } else {
    answer["group"] = std::get<Group>(target).number;
  }
}

json rates_to_json(const std::vector<MeterRate>& rates) {
  json all = json::array();
  for (const MeterRate& rate : rates) {
    all.push_back({{"per_us", rate.per_us}, {"burst", rate.burst}});
  }
  return all;
}

// --- operations ---------------------------------------------------------------------------------

/// Everything an operation says is read, and what it should not say refused, before it is done.
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
  const Default found = control.table_default_read(reader.text("table"));
  json answer = {{"ok", true},
                 {"is_initial", found.is_initial},
                 {"hits", found.hits},
                 {"misses", found.misses}};
  if (found.target) add_target(answer, *found.target);
  return answer;
}

json member_add(Control& control, ObjectReader& reader) {
  const std::string profile = reader.text("profile");
  const ActionCall call = read_call(reader);
  return {{"ok", true}, {"member", control.member_add(profile, call)}};
}

json member_modify(Control& control, ObjectReader& reader) {
  const std::string profile = reader.text("profile");
  const std::uint32_t member = small(reader, "member");
  const ActionCall call = read_call(reader);
  control.member_modify(profile, member, call);
  return {{"ok", true}};
}

json member_delete(Control& control, ObjectReader& reader) {
  const std::string profile = reader.text("profile");
  const std::uint32_t member = small(reader, "member");
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
  const std::uint32_t group = small(reader, "group");
  const std::uint32_t member = small(reader, "member");
  (control.*change)(profile, group, member);
  return {{"ok", true}};
}

json group_delete(Control& control, ObjectReader& reader) {
  const std::string profile = reader.text("profile");
  const std::uint32_t group = small(reader, "group");
  control.group_delete(profile, group);
  return {{"ok", true}};
}

json member_read(Control& control, ObjectReader& reader) {
  const std::string profile = reader.text("profile");
  json members = json::array();
  for (const ProfileMember& one : control.members(profile, read_optional(reader, "member"))) {
    json member = {{"member", one.number}};
    add_call(member, one.call);
    members.push_back(std::move(member));
  }
  return {{"ok", true}, {"members", std::move(members)}};
}

json group_read(Control& control, ObjectReader& reader) {
  const std::string profile = reader.text("profile");
  json groups = json::array();
  for (const ProfileGroup& one : control.groups(profile, read_optional(reader, "group"))) {
    groups.push_back({{"group", one.number}, {"members", one.members}});
  }
  return {{"ok", true}, {"groups", std::move(groups)}};
}

json register_read(Control& control, ObjectReader& reader) {
  const std::string name = reader.text("register");
  json values = json::array();
  if (reader.has("index")) {
    const std::uint64_t index = reader.whole("index");
    values.push_back(number_to_json(control.register_read(name, index)));
  } else {
    for (const Bytes& value : control.register_read_all(name)) {
      values.push_back(number_to_json(value));
    }
  }
  return {{"ok", true}, {"values", std::move(values)}};
}

json register_write(Control& control, ObjectReader& reader) {
  const std::string name = reader.text("register");
  const std::uint64_t index = reader.whole("index");
  const Bytes value = number(reader.any("value"), [&] { return reader.at("value"); });
  control.register_write(name, index, value);
  return {{"ok", true}};
}

json register_reset(Control& control, ObjectReader& reader) {
  const std::string name = reader.text("register");
  control.register_reset(name);
  return {{"ok", true}};
}

json counter_read(Control& control, ObjectReader& reader) {
  Count count;
  if (reader.has("table")) {
    reader.only({"op", "table", "handle", "match", "priority"});
    const std::string table = reader.text("table");
    count = control.direct_counter_read(table, read_entry(control, table, reader));
  } else {
    reader.only({"op", "counter", "index"});
    const std::string name = reader.text("counter");
    if (!reader.has("index")) {
      json counts = json::array();
      for (const Count& one : control.counter_read_all(name)) {
        counts.push_back({one.packets, one.bytes});
      }
      return {{"ok", true}, {"counts", std::move(counts)}};
    }
    count = control.counter_read(name, reader.whole("index"));
  }
  return {{"ok", true}, {"packets", count.packets}, {"bytes", count.bytes}};
}

json counter_write(Control& control, ObjectReader& reader) {
  const Count count = {reader.whole("packets"), reader.whole("bytes")};
  if (reader.has("table")) {
    reader.only({"op", "table", "handle", "match", "priority", "packets", "bytes"});
    const std::string table = reader.text("table");
    control.direct_counter_write(table, read_entry(control, table, reader), count);
  } else {
    reader.only({"op", "counter", "index", "packets", "bytes"});
    const std::string name = reader.text("counter");
    control.counter_write(name, reader.whole("index"), count);
  }
  return {{"ok", true}};
}

json counter_reset(Control& control, ObjectReader& reader) {
  const std::string name = reader.text("counter");
  control.counter_reset(name);
  return {{"ok", true}};
}

json meter_rates(Control& control, ObjectReader& reader) {
  const std::vector<MeterRate> rates = read_rates(reader);
  if (reader.has("table")) {
    reader.only({"op", "table", "handle", "match", "priority", "rates"});
    const std::string table = reader.text("table");
    control.direct_meter_rates(table, read_entry(control, table, reader), rates);
    return {{"ok", true}};
  }
  reader.only({"op", "meter", "index", "rates"});
  const std::string name = reader.text("meter");
  if (reader.has("index")) {
    const std::uint64_t index = reader.whole("index");
    control.meter_rates(name, index, rates);
  } else {
    control.meter_rates_all(name, rates);
  }
  return {{"ok", true}};
}

json meter_read(Control& control, ObjectReader& reader) {
  if (reader.has("table")) {
    reader.only({"op", "table", "handle", "match", "priority"});
    const std::string table = reader.text("table");
    const Handle handle = read_entry(control, table, reader);
    return {{"ok", true}, {"rates", rates_to_json(control.direct_meter_read(table, handle))}};
  }
  reader.only({"op", "meter", "index"});
  const std::string name = reader.text("meter");
  if (reader.has("index")) {
    return {{"ok", true},
            {"rates", rates_to_json(control.meter_read(name, reader.whole("index")))}};
  }
  json cells = json::array();
  for (const auto& rates : control.meter_read_all(name)) cells.push_back(rates_to_json(rates));
  return {{"ok", true}, {"cells", std::move(cells)}};
}

json mirror_add(Control& control, ObjectReader& reader) {
  const std::uint32_t session = small(reader, "session");
  Mirror mirror;
  if (reader.has("port")) mirror.port = static_cast<Port>(reader.whole("port", 0, 511));
  mirror.group = read_optional(reader, "group");
  mirror.max_bytes = read_optional(reader, "max_bytes");
  if (!mirror.port && !mirror.group) {
    throw ConfigError(reader.here(), "a mirror session that goes nowhere",
                      "give \"port\", \"group\", or both");
  }
  control.mirror_add(session, mirror);
  return {{"ok", true}};
}

json mirror_delete(Control& control, ObjectReader& reader) {
  const std::uint32_t session = small(reader, "session");
  control.mirror_delete(session);
  return {{"ok", true}};
}

json mirror_read(Control& control, ObjectReader&) {
  json sessions = json::array();
  for (const auto& [number, mirror] : control.mirrors()) {
    json session = {{"session", number}};
    if (mirror.port) session["port"] = *mirror.port;
    if (mirror.group) session["group"] = *mirror.group;
    if (mirror.max_bytes) session["max_bytes"] = *mirror.max_bytes;
    sessions.push_back(std::move(session));
  }
  return {{"ok", true}, {"sessions", std::move(sessions)}};
}

json multicast_create(Control& control, ObjectReader& reader) {
  const std::uint32_t group = small(reader, "group");
  const std::vector<Copies> copies = read_copies(reader);
  control.multicast_create(group, copies);
  return {{"ok", true}};
}

json multicast_delete(Control& control, ObjectReader& reader) {
  const std::uint32_t group = small(reader, "group");
  control.multicast_delete(group);
  return {{"ok", true}};
}

json multicast_read(Control& control, ObjectReader&) {
  json groups = json::array();
  for (const auto& [number, all] : control.multicast_groups()) {
    json copies = json::array();
    for (const Copies& one : all) copies.push_back({{"rid", one.rid}, {"ports", one.ports}});
    groups.push_back({{"group", number}, {"copies", std::move(copies)}});
  }
  return {{"ok", true}, {"groups", std::move(groups)}};
}

json value_set_add(Control& control, ObjectReader& reader) {
  const std::string set = reader.text("set");
  const Bytes value = number(reader.any("value"), [&] { return reader.at("value"); });
  control.value_set_add(set, value);
  return {{"ok", true}};
}

json value_set_clear(Control& control, ObjectReader& reader) {
  const std::string set = reader.text("set");
  control.value_set_clear(set);
  return {{"ok", true}};
}

json value_set_read(Control& control, ObjectReader& reader) {
  json values = json::array();
  for (const Bytes& value : control.value_set(reader.text("set"))) {
    values.push_back(number_to_json(value));
  }
  return {{"ok", true}, {"values", std::move(values)}};
}

struct Operation {
  json (*perform)(Control&, ObjectReader&);
  std::vector<std::string_view> keys;
};
const std::unordered_map<std::string, Operation>& operations() {
  static const std::unordered_map<std::string, Operation> all = {
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
      {"group_read", {group_read, {"op", "profile", "group"}}},
      {"register_read", {register_read, {"op", "register", "index"}}},
      {"register_write", {register_write, {"op", "register", "index", "value"}}},
      {"register_reset", {register_reset, {"op", "register"}}},
      {"counter_read",
       {counter_read, {"op", "table", "handle", "match", "priority", "counter", "index"}}},
      {"counter_write",
       {counter_write,
        {"op", "table", "handle", "match", "priority", "counter", "index", "packets", "bytes"}}},
      {"counter_reset", {counter_reset, {"op", "counter"}}},
      {"meter_rates",
       {meter_rates, {"op", "table", "handle", "match", "priority", "meter", "index", "rates"}}},
      {"meter_read",
       {meter_read, {"op", "table", "handle", "match", "priority", "meter", "index"}}},
      {"mirror_add", {mirror_add, {"op", "session", "port", "group", "max_bytes"}}},
      {"mirror_read", {mirror_read, {"op"}}},
      {"mirror_delete", {mirror_delete, {"op", "session"}}},
      {"multicast_create", {multicast_create, {"op", "group", "copies"}}},
      {"multicast_delete", {multicast_delete, {"op", "group"}}},
      {"multicast_read", {multicast_read, {"op"}}},
      {"value_set_add", {value_set_add, {"op", "set", "value"}}},
      {"value_set_clear", {value_set_clear, {"op", "set"}}},
      {"value_set_read", {value_set_read, {"op", "set"}}}};
  return all;
}

}  // namespace

json perform(Control& control, ObjectReader& reader, const std::string& op) {
  const auto found = operations().find(op);
  if (found == operations().end()) {
    std::vector<std::string> names;
    for (const auto& [name, operation] : operations()) names.push_back(name);
    std::ranges::sort(names);
    std::string known;
    for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
    throw ConfigError(reader.at("op"), "unknown operation " + shown(op),
                      "one of " + known +
                          ", batch, digests, events, packet_out, pipeline_check, pipeline_read, "
                          "pipeline_set, queue_set, show, stop");
  }
  reader.only(found->second.keys);
  return found->second.perform(control, reader);
}

std::vector<std::uint8_t> read_packet(const ObjectReader& reader) {
  const json& value = reader.any("bytes");
  constexpr std::size_t max_digits_of_packet = 1 << 18;
  if (value.is_string()) {
    const std::string& digits = value.get_ref<const std::string&>();
    if (digits.empty()) return {};
    if (digits.size() % 2 == 0 && digits.size() <= max_digits_of_packet) {
      if (auto bytes = hexadecimal(digits, max_digits_of_packet)) return *bytes;
    }
  }
  throw ConfigError(reader.at("bytes"), "no bytes: " + shown(value),
                    R"(write two hexadecimal digits a byte: "0a1b2c")");
}

std::string hexadecimal_of(const Bytes& bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::uint8_t byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

json entry_to_json(const Entry& entry) {
  json match = json::array();
  for (const Match& one : entry.match) match.push_back(match_to_json(one));
  json answer = {{"handle", entry.handle},
                 {"match", std::move(match)},
                 {"hits", entry.hits},
                 {"idle_us", entry.idle_us}};
  if (entry.priority) answer["priority"] = *entry.priority;
  add_target(answer, entry.target);
  if (entry.timeout_us) answer["timeout_us"] = *entry.timeout_us;
  if (entry.count) {
    answer["packets"] = entry.count->packets;
    answer["bytes"] = entry.count->bytes;
  }
  if (entry.rates) answer["rates"] = rates_to_json(*entry.rates);
  return answer;
}

json number_to_json(const Bytes& big_endian) {
  auto first = std::ranges::find_if(big_endian, [](std::uint8_t byte) { return byte != 0; });
  if (big_endian.end() - first > 8) {
    return "0x" + hexadecimal_of({first, big_endian.end()});
  }
  std::uint64_t value = 0;
  for (; first != big_endian.end(); ++first) value = value << 8 | *first;
  return value;
}

}  // namespace nagi::p4
