// SPDX-License-Identifier: Apache-2.0
#include "daemon/config.hpp"

#include <limits>
#include <set>

#include "daemon/packet_record.hpp"
#include "model/direction_json.hpp"
#include "model/text.hpp"

namespace nagi::daemon {

namespace {

using model::ConfigError;
using model::ObjectReader;

constexpr std::uint64_t schema_version = 1;

std::string interface_name(const ObjectReader& reader, const std::string& key,
                           std::set<std::string>& taken) {
  std::string interface = reader.text(key);
  if (!taken.insert(interface).second) {
    throw ConfigError(reader.at(key), "interface " + model::shortened(interface) + " is used twice",
                      "give every end of every link an interface of its own");
  }
  return interface;
}

void read_radio_sockets(const ObjectReader& reader, LinkConfig& link) {
  if (!reader.has("sockets")) return;
  ObjectReader sockets = reader.object("sockets");
  sockets.only({"forward", "backward"});
  const auto descriptor = [&sockets](const std::string& direction) -> std::optional<int> {
    if (!sockets.has(direction)) return std::nullopt;
    return static_cast<int>(sockets.whole(direction, 3, std::numeric_limits<std::int16_t>::max()));
  };
  link.socket_forward = descriptor("forward");
  link.socket_backward = descriptor("backward");
}

Config read(ObjectReader reader) {
  Config config;
  std::vector<std::string_view> keys = runtime::settings_keys();
  keys.insert(keys.end(), {"packets", "transmissions", "links"});
  reader.only(keys);
  runtime::read_settings(reader, "nagi-link", config);
  if (reader.has("packets")) config.packets = reader.text("packets");
  if (reader.has("transmissions")) config.transmissions = reader.text("transmissions");

  std::set<std::string> names;
  std::set<std::uint32_t> ids;
  std::set<std::string> interfaces;
  const auto& links = reader.array("links");
  if (links.empty()) {
    throw ConfigError(reader.at("links"), "no links", "list at least one link");
  }
  for (std::size_t i = 0; i < links.size(); ++i) {
    ObjectReader item(links[i], reader.at("links") / i);
    item.only({"name", "id", "a", "b", "forward", "backward", "radio", "sockets"});
    LinkConfig link;
    link.name = item.text("name");
    if (!names.insert(link.name).second) {
      throw ConfigError(item.at("name"), "two links are called " + model::shortened(link.name),
                        "give each link a name of its own");
    }
    link.id =
        static_cast<std::uint32_t>(item.whole("id", 0, std::numeric_limits<std::uint32_t>::max()));
    if (!ids.insert(link.id).second) {
      throw ConfigError(item.at("id"), "two links have the id " + std::to_string(link.id),
                        "give each link an id of its own: they keep their random draws apart");
    }
    link.a = interface_name(item, "a", interfaces);
    link.b = interface_name(item, "b", interfaces);
    link.forward = model::read_direction(item.object("forward"));
    link.backward = model::read_direction(item.object("backward"));
    if (item.has("radio")) {
      throw ConfigError(item.at("radio"), "link " + model::shortened(link.name) + " is a radio",
                        "start nagi-sdr with this configuration (`make sdr` installs it)");
    }
    read_radio_sockets(item, link);
    config.links.push_back(std::move(link));
  }
  if (!config.packets.empty() && config.links.size() > max_recorded_links) {
    throw ConfigError(reader.at("packets"),
                      "cannot record more than " + std::to_string(max_recorded_links) + " links",
                      "leave the record out, or run two nagi-links");
  }
  return config;
}

}  // namespace

Config read_config(const runtime::JsonSource& source) {
  try {
    return read(ObjectReader(source.value(), nlohmann::json::json_pointer()));
  } catch (const ConfigError& error) {
    throw source.located(error);
  }
}

nlohmann::json to_json(const Config& config) {
  nlohmann::json links = nlohmann::json::array();
  for (const LinkConfig& link : config.links) {
    links.push_back({{"name", link.name},
                     {"id", link.id},
                     {"a", link.a},
                     {"b", link.b},
                     {"forward", model::to_json(link.forward)},
                     {"backward", model::to_json(link.backward)}});
  }
  return {{"schema_version", schema_version}, {"seed", config.seed}, {"links", links}};
}

}  // namespace nagi::daemon
