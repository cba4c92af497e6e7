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

using model::ConfigError;
using model::ObjectReader;
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

std::optional<Bytes> hexadecimal(std::string_view digits) {
  if (digits.empty() || digits.size() > max_digits) return std::nullopt;
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
  throw ConfigError(where(), "no number: " + model::shown(value),
                    R"(write an integer from 0 on, "0x...", or an address: "10.0.0.1", )"
                    R"("2001:db8::1", "02:00:00:00:00:01")");
}

std::uint32_t small(const ObjectReader& reader, const std::string& key) {
  return static_cast<std::uint32_t>(reader.whole(key, 0, most_32));
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
    throw ConfigError(where(), "no prefix: " + model::shown(text), R"(write it as "10.0.0.0/8")");
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
        throw ConfigError(item.at("ports") / port, "no port: " + model::shown(value),
                          "write a whole number from 0 to 511");
      }
      copies.ports.push_back(value.get<Port>());
    }
    all.push_back(std::move(copies));
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
  return {{"ok", true}, {"handle", control.table_add(table, match, target, priority)}};
}

json table_modify(Control& control, ObjectReader& reader) {
  const std::string table = reader.text("table");
  const Handle handle = reader.whole("handle");
  const Target target = read_target(reader);
  control.table_modify(table, handle, target);
  return {{"ok", true}};
}

json table_delete(Control& control, ObjectReader& reader) {
  const std::string table = reader.text("table");
  const Handle handle = reader.whole("handle");
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
  const Target target = read_target(reader);
  control.table_default(table, target);
  return {{"ok", true}};
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
    reader.only({"op", "table", "handle"});
    const std::string table = reader.text("table");
    const Handle handle = reader.whole("handle");
    count = control.direct_counter_read(table, handle);
  } else {
    reader.only({"op", "counter", "index"});
    const std::string name = reader.text("counter");
    const std::uint64_t index = reader.whole("index");
    count = control.counter_read(name, index);
  }
  return {{"ok", true}, {"packets", count.packets}, {"bytes", count.bytes}};
}

json counter_reset(Control& control, ObjectReader& reader) {
  const std::string name = reader.text("counter");
  control.counter_reset(name);
  return {{"ok", true}};
}

json meter_rates(Control& control, ObjectReader& reader) {
  const std::vector<MeterRate> rates = read_rates(reader);
  if (reader.has("table")) {
    reader.only({"op", "table", "handle", "rates"});
    const std::string table = reader.text("table");
    const Handle handle = reader.whole("handle");
    control.direct_meter_rates(table, handle, rates);
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

json mirror_add(Control& control, ObjectReader& reader) {
  const std::uint32_t session = small(reader, "session");
  Mirror mirror;
  if (reader.has("port")) mirror.port = static_cast<Port>(reader.whole("port", 0, 511));
  if (reader.has("group")) mirror.group = small(reader, "group");
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

struct Operation {
  json (*perform)(Control&, ObjectReader&);
  std::vector<std::string_view> keys;
};
const std::unordered_map<std::string, Operation>& operations() {
  static const std::unordered_map<std::string, Operation> all = {
      {"table_add",
       {table_add, {"op", "table", "match", "action", "data", "member", "group", "priority"}}},
      {"table_modify",
       {table_modify, {"op", "table", "handle", "action", "data", "member", "group"}}},
      {"table_delete", {table_delete, {"op", "table", "handle"}}},
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
      {"register_read", {register_read, {"op", "register", "index"}}},
      {"register_write", {register_write, {"op", "register", "index", "value"}}},
      {"register_reset", {register_reset, {"op", "register"}}},
      {"counter_read", {counter_read, {"op", "table", "handle", "counter", "index"}}},
      {"counter_reset", {counter_reset, {"op", "counter"}}},
      {"meter_rates", {meter_rates, {"op", "table", "handle", "meter", "index", "rates"}}},
      {"mirror_add", {mirror_add, {"op", "session", "port", "group"}}},
      {"mirror_delete", {mirror_delete, {"op", "session"}}},
      {"multicast_create", {multicast_create, {"op", "group", "copies"}}},
      {"multicast_delete", {multicast_delete, {"op", "group"}}},
      {"value_set_add", {value_set_add, {"op", "set", "value"}}},
      {"value_set_clear", {value_set_clear, {"op", "set"}}}};
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
    throw ConfigError(reader.at("op"), "unknown operation " + model::shown(op),
                      "one of " + known + ", queue_set, digests, show, stop, batch");
  }
  reader.only(found->second.keys);
  return found->second.perform(control, reader);
}

json number_to_json(const Bytes& big_endian) {
  auto first = std::ranges::find_if(big_endian, [](std::uint8_t byte) { return byte != 0; });
  if (big_endian.end() - first > 8) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text = "0x";
    for (; first != big_endian.end(); ++first) {
      text += digits[*first >> 4];
      text += digits[*first & 15];
    }
    return text;
  }
  std::uint64_t value = 0;
  for (; first != big_endian.end(); ++first) value = value << 8 | *first;
  return value;
}

}  // namespace nagi::p4
