// SPDX-License-Identifier: Apache-2.0
//
// Operations on mirror sessions, multicast groups and value sets.
#include "switch/daemon/operation_table.hpp"
#include "switch/daemon/operation_values.hpp"

namespace nagi::p4 {

using nlohmann::json;

namespace {

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

json mirror_add(Control& control, ObjectReader& reader) {
  const std::uint32_t session = read_32_bits(reader, "session");
  Mirror mirror;
  if (reader.has("port")) mirror.port = static_cast<Port>(reader.whole("port", 0, 511));
  mirror.group = read_optional_32_bits(reader, "group");
  mirror.max_bytes = read_optional_32_bits(reader, "max_bytes");
  if (!mirror.port && !mirror.group) {
    throw ConfigError(reader.here(), "a mirror session without a destination",
                      "give \"port\", \"group\", or both");
  }
  control.mirror_add(session, mirror);
  return {{"ok", true}};
}

json mirror_delete(Control& control, ObjectReader& reader) {
  const std::uint32_t session = read_32_bits(reader, "session");
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
  const std::uint32_t group = read_32_bits(reader, "group");
  const std::vector<Copies> copies = read_copies(reader);
  control.multicast_create(group, copies);
  return {{"ok", true}};
}

json multicast_delete(Control& control, ObjectReader& reader) {
  const std::uint32_t group = read_32_bits(reader, "group");
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
  const Bytes value = read_number(reader.any("value"), [&] { return reader.at("value"); });
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

}  // namespace

OperationTable replication_operations() {
  return {{"mirror_add", {mirror_add, {"op", "session", "port", "group", "max_bytes"}}},
          {"mirror_read", {mirror_read, {"op"}}},
          {"mirror_delete", {mirror_delete, {"op", "session"}}},
          {"multicast_create", {multicast_create, {"op", "group", "copies"}}},
          {"multicast_delete", {multicast_delete, {"op", "group"}}},
          {"multicast_read", {multicast_read, {"op"}}},
          {"value_set_add", {value_set_add, {"op", "set", "value"}}},
          {"value_set_clear", {value_set_clear, {"op", "set"}}},
          {"value_set_read", {value_set_read, {"op", "set"}}}};
}

}  // namespace nagi::p4
