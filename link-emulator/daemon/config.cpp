// SPDX-License-Identifier: Apache-2.0
#include "daemon/config.hpp"

#include <cstdio>
#include <limits>
#include <set>

#include "base/text.hpp"
#include "daemon/packet_record.hpp"
#include "model/direction_json.hpp"
#include "model/medium/medium_json.hpp"

namespace nagi::daemon {

namespace {

using nlohmann::json;

constexpr std::uint64_t schema_version = 1;

std::string read_interface(const ObjectReader& reader, const std::string& key,
                           std::set<std::string>& taken) {
  std::string interface = reader.text(key);
  if (!taken.insert(interface).second) {
    throw ConfigError(reader.at(key), "interface " + shortened(interface) + " is used twice",
                      "use a different interface for each end of each link, and for each station");
  }
  return interface;
}

/// Names, ids and interfaces that links and media already use.
struct Taken {
  std::set<std::string> names;
  std::set<std::uint32_t> ids;
  std::set<std::string> interfaces;
};

std::string read_name(const ObjectReader& reader, Taken& taken) {
  std::string name = reader.text("name");
  if (!taken.names.insert(name).second) {
    throw ConfigError(reader.at("name"), "two links or media are called " + shortened(name),
                      "give each of them a different name");
  }
  return name;
}

std::uint32_t read_id(const ObjectReader& reader, Taken& taken) {
  const auto id =
      static_cast<std::uint32_t>(reader.whole("id", 0, std::numeric_limits<std::uint32_t>::max()));
  if (!taken.ids.insert(id).second) {
    throw ConfigError(reader.at("id"), "two links or media have the id " + std::to_string(id),
                      "give each of them a different id, because random draws depend on it");
  }
  return id;
}

/// Refuse an id that is too large for the 23 bits of a channel's number, if the link uses the loss
/// model `sdr`.
void refuse_ids_without_a_channel(const ObjectReader& reader, const LinkConfig& link) {
  if (link.id < model::max_channels / 2) return;
  for (const auto* direction : {&link.forward, &link.backward}) {
    if (!std::holds_alternative<model::SdrLoss>(direction->loss)) continue;
    throw ConfigError(reader.at("id"),
                      "loss model \"sdr\" on a link with the id " + std::to_string(link.id),
                      "give the link an id below " + std::to_string(model::max_channels / 2));
  }
}

MacAddress read_mac(const ObjectReader& reader) {
  const std::string text = reader.text("mac");
  MacAddress mac{};
  int end = 0;
  if (std::sscanf(text.c_str(), "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%n", &mac[0], &mac[1], &mac[2],
                  &mac[3], &mac[4], &mac[5], &end) != 6 ||
      static_cast<std::size_t>(end) != text.size()) {
    throw ConfigError(reader.at("mac"), "no MAC address: " + shown(reader.any("mac")),
                      "write an address such as 02:00:00:00:00:01");
  }
  return mac;
}

std::string format_mac(const MacAddress& mac) {
  std::string text;
  for (const std::uint8_t byte : mac) {
    constexpr std::string_view digits = "0123456789abcdef";
    if (!text.empty()) text += ':';
    text += {digits[byte >> 4U], digits[byte & 15U]};
  }
  return text;
}

MediumSettings read_medium(const ObjectReader& reader, Taken& taken) {
  MediumSettings medium;
  medium.config =
      model::read_medium(reader, {"name", "id", "monitor"}, {"name", "interface", "mac"});
  medium.name = read_name(reader, taken);
  medium.id = read_id(reader, taken);
  if (reader.has("monitor")) medium.monitor = reader.text("monitor");
  const json& stations = reader.array("stations");
  std::set<std::string> names;
  for (std::size_t i = 0; i < stations.size(); ++i) {
    const ObjectReader station(stations[i], reader.at("stations") / i);
    StationSettings settings;
    settings.name = station.text("name");
    if (!names.insert(settings.name).second) {
      throw ConfigError(station.at("name"), "two stations are called " + shortened(settings.name),
                        "give each station a different name");
    }
    settings.interface = read_interface(station, "interface", taken.interfaces);
    if (station.has("mac")) settings.mac = read_mac(station);
    medium.stations.push_back(std::move(settings));
  }
  return medium;
}

json to_json(const MediumSettings& medium) {
  json out = model::to_json(medium.config);
  out.update({{"name", medium.name}, {"id", medium.id}});
  if (!medium.monitor.empty()) out["monitor"] = medium.monitor;
  for (std::size_t i = 0; i < medium.stations.size(); ++i) {
    const StationSettings& station = medium.stations[i];
    out["stations"][i].update({{"name", station.name}, {"interface", station.interface}});
    if (station.mac) out["stations"][i]["mac"] = format_mac(*station.mac);
  }
  return out;
}

int read_descriptor(const ObjectReader& reader, const std::string& key) {
  return static_cast<int>(reader.whole(key, 3, std::numeric_limits<std::int16_t>::max()));
}

void read_radio_sockets(const ObjectReader& reader, LinkConfig& link) {
  if (!reader.has("sockets")) return;
  ObjectReader sockets = reader.object("sockets");
  sockets.only({"forward", "backward"});
  const auto descriptor = [&sockets](const std::string& direction) -> std::optional<int> {
    if (!sockets.has(direction)) return std::nullopt;
    return read_descriptor(sockets, direction);
  };
  link.socket_forward = descriptor("forward");
  link.socket_backward = descriptor("backward");
}

Config read(ObjectReader reader) {
  Config config;
  std::vector<std::string_view> keys = runtime::settings_keys();
  keys.insert(keys.end(), {"packets", "transmissions", "links", "media"});
  reader.only(keys);
  runtime::read_settings(reader, "nagi-link", config);
  if (reader.has("packets")) config.packets = reader.text("packets");
  if (reader.has("transmissions")) config.transmissions = reader.text("transmissions");

  Taken taken;
  const auto& links = reader.array("links");
  if (links.empty() && !reader.has("media")) {
    throw ConfigError(reader.at("links"), "no links", "list at least one link");
  }
  for (std::size_t i = 0; i < links.size(); ++i) {
    ObjectReader item(links[i], reader.at("links") / i);
    item.only({"name", "id", "a", "b", "forward", "backward", "radio", "sockets", "core"});
    LinkConfig link;
    link.name = read_name(item, taken);
    link.id = read_id(item, taken);
    link.a = read_interface(item, "a", taken.interfaces);
    link.b = read_interface(item, "b", taken.interfaces);
    link.forward = model::read_direction(item.object("forward"));
    link.backward = model::read_direction(item.object("backward"));
    refuse_ids_without_a_channel(item, link);
    if (item.has("radio")) {
      throw ConfigError(item.at("radio"), "link " + shortened(link.name) + " is a radio",
                        "start nagi-sdr with this configuration (`make sdr` installs it)");
    }
    read_radio_sockets(item, link);
    if (item.has("core")) link.core = read_descriptor(item, "core");
    config.links.push_back(std::move(link));
  }
  if (reader.has("media")) {
    const auto& media = reader.array("media");
    for (std::size_t i = 0; i < media.size(); ++i) {
      config.media.push_back(read_medium({media[i], reader.at("media") / i}, taken));
    }
  }
  std::size_t directions = 2 * config.links.size();
  for (const MediumSettings& medium : config.media) directions += medium.stations.size();
  if (!config.packets.empty() && directions > max_recorded_directions) {
    throw ConfigError(reader.at("packets"),
                      "cannot record more than " + std::to_string(max_recorded_directions) +
                          " directions of links and stations of media",
                      "remove \"packets\", or run two nagi-links");
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
  nlohmann::json out = {
      {"schema_version", schema_version}, {"seed", config.seed}, {"links", links}};
  for (const MediumSettings& medium : config.media) out["media"].push_back(to_json(medium));
  return out;
}

}  // namespace nagi::daemon
