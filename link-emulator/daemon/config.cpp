// SPDX-License-Identifier: Apache-2.0
#include "daemon/config.hpp"

#include <sched.h>

#include <set>

#include "daemon/packet_record.hpp"

namespace nagi::daemon {

namespace {

using model::ConfigError;
using model::ObjectReader;

constexpr std::uint64_t schema_version = 1;
constexpr std::uint64_t most_spin = 1'000'000;  // ns: who waits longer had better sleep

std::string interface_name(ObjectReader& reader, const std::string& key,
                           std::set<std::string>& taken) {
  std::string interface = reader.text(key);
  if (!taken.insert(interface).second) {
    throw ConfigError(reader.at(key), "interface " + interface + " is used twice",
                      "give every end of every link an interface of its own");
  }
  return interface;
}

io::Choice read_io(ObjectReader& reader) {
  const std::string choice = reader.text("io");
  if (choice == "best") return io::Choice::best;
  if (choice == "af_xdp") return io::Choice::af_xdp;
  if (choice == "af_packet") return io::Choice::af_packet;
  throw ConfigError(reader.at("io"), "unknown packet I/O \"" + choice + "\"",
                    R"(one of "best", "af_xdp", "af_packet")");
}

Config read(ObjectReader reader) {
  Config config;
  const std::uint64_t version = reader.whole("schema_version");
  if (version != schema_version) {
    throw ConfigError(reader.at("schema_version"),
                      "this nagi-link cannot read version " + std::to_string(version),
                      "version " + std::to_string(schema_version));
  }
  config.seed = reader.whole("seed", 0, std::numeric_limits<std::uint64_t>::max());
  if (reader.has("epoch_realtime_ns")) {
    config.epoch_realtime_ns = static_cast<std::int64_t>(reader.whole("epoch_realtime_ns"));
  }
  if (reader.has("offloads")) {
    const std::string policy = reader.text("offloads");
    if (policy != "switch_off" && policy != "refuse") {
      throw ConfigError(reader.at("offloads"), "unknown policy \"" + policy + "\"",
                        R"("switch_off" or "refuse")");
    }
    config.offloads = policy == "refuse" ? OffloadPolicy::refuse : OffloadPolicy::switch_off;
  }
  if (reader.has("io")) config.io = read_io(reader);
  if (reader.has("spin_ns")) {
    config.spin_ns = static_cast<std::int64_t>(reader.whole("spin_ns", 0, most_spin));
  }
  if (reader.has("virtual_time")) config.virtual_time = reader.flag("virtual_time");
  if (reader.has("cpu")) config.cpu = static_cast<int>(reader.whole("cpu", 0, CPU_SETSIZE - 1));
  for (const auto& [key, path] :
       {std::pair("account", &config.account), std::pair("packets", &config.packets),
        std::pair("drops", &config.drops), std::pair("control_socket", &config.control_socket)}) {
    if (reader.has(key)) *path = reader.text(key);
  }

  std::set<std::string> names;
  std::set<std::uint32_t> ids;
  std::set<std::string> interfaces;
  const auto& links = reader.array("links");
  if (links.empty()) {
    throw ConfigError(reader.at("links"), "no links", "list at least one link");
  }
  for (std::size_t i = 0; i < links.size(); ++i) {
    ObjectReader item(links[i], reader.at("links") / i);
    LinkConfig link;
    link.name = item.text("name");
    if (!names.insert(link.name).second) {
      throw ConfigError(item.at("name"), "two links are called " + link.name,
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
    link.a_to_b = model::read_direction(item.object("a_to_b"));
    link.b_to_a = model::read_direction(item.object("b_to_a"));
    item.finish();
    config.links.push_back(std::move(link));
  }
  if (!config.packets.empty() && config.links.size() > most_recorded_links) {
    throw ConfigError(reader.at("packets"),
                      "cannot record more than " + std::to_string(most_recorded_links) + " links",
                      "leave the record out, or run two nagi-links");
  }
  reader.finish();
  return config;
}

}  // namespace

Config read_config(const JsonSource& source) {
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
                     {"a_to_b", model::to_json(link.a_to_b)},
                     {"b_to_a", model::to_json(link.b_to_a)}});
  }
  return {{"schema_version", schema_version}, {"seed", config.seed}, {"links", links}};
}

}  // namespace nagi::daemon
