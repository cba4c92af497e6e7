// SPDX-License-Identifier: Apache-2.0
#include "switch/daemon/config.hpp"

#include <optional>
#include <set>

#include "base/text.hpp"
#include "model/bounds.hpp"

namespace nagi::p4 {

namespace {

using nlohmann::json;

constexpr std::uint64_t max_packet_rate = 1'000'000'000;
constexpr std::uint64_t max_priorities = 8;  // the field of v1model has three bits
constexpr std::uint64_t min_interval = 100'000;
constexpr std::uint64_t max_interval = 3'600'000'000'000;

/// Return whether the key exists and is not null.
bool is_given(const ObjectReader& reader, const std::string& key) {
  return reader.has(key) && !reader.any(key).is_null();
}

/// Read a limit into `value` if the key exists; null removes the limit. `make` converts the number.
template <class Value, class Make>
void read_limit(const ObjectReader& reader, const std::string& key, Bound<std::uint64_t> bound,
                std::optional<Value>& value, Make make) {
  if (!reader.has(key)) return;
  if (!is_given(reader, key)) {
    value.reset();
    return;
  }
  if (reader.any(key) == 0) {
    throw ConfigError(reader.at(key), "zero: no packet could be sent or queued",
                      "give a whole number from 1 on, or null for no limit");
  }
  value = make(reader.whole(key, bound));
}

std::string optional_text(const ObjectReader& reader, const std::string& key) {
  return is_given(reader, key) ? reader.text(key) : std::string();
}

/// Read the name of an interface or file that only one port may have. `used_names` has the names of
/// the ports so far.
std::string read_unique_name(const ObjectReader& reader, const std::string& key,
                             std::set<std::string>& used_names) {
  std::string name = reader.text(key);
  if (!used_names.insert(name).second) {
    throw ConfigError(reader.at(key), shortened(name) + " is used twice",
                      "give every port another one");
  }
  return name;
}

PortConfig read_port(ObjectReader reader, Medium medium, std::set<std::string>& used_names) {
  PortConfig port;
  std::vector<std::string_view> keys = queue_keys();
  keys.insert(keys.end(), {"number", "interface", "in", "out", "priorities"});
  reader.only(keys);
  port.number = static_cast<Port>(reader.whole("number", 0, max_ports - 1));
  if (medium == Medium::requests) {
    for (const char* key : {"in", "out", "interface"}) {
      if (is_given(reader, key)) {
        throw ConfigError(reader.at(key), "simulate takes packets from requests",
                          "leave this key out");
      }
    }
  } else if (medium == Medium::interfaces) {
    for (const char* key : {"in", "out"}) {
      if (is_given(reader, key)) {
        throw ConfigError(reader.at(key), "captures are for `nagi-switch replay`",
                          "give \"interface\", or run replay");
      }
    }
    port.interface = read_unique_name(reader, "interface", used_names);
  } else {
    if (is_given(reader, "interface")) {
      throw ConfigError(reader.at("interface"), "replay takes packets from captures",
                        "give \"in\" and \"out\", or run `nagi-switch run`");
    }
    if (is_given(reader, "in")) port.in = reader.text("in");
    if (is_given(reader, "out")) port.out = read_unique_name(reader, "out", used_names);
    if (port.in.empty() && port.out.empty()) {
      throw ConfigError(reader.here(), "a port without captures", "give \"in\", \"out\", or both");
    }
  }
  if (is_given(reader, "priorities")) {
    port.queue.priorities =
        static_cast<std::uint32_t>(reader.whole("priorities", 1, max_priorities));
  }
  read_queue(reader, port.queue);
  return port;
}

SwitchConfig read(ObjectReader reader, Medium medium) {
  SwitchConfig config;
  std::vector<std::string_view> keys = runtime::settings_keys();
  keys.insert(keys.end(), {"pipeline", "entries", "digests", "queues", "queue_interval_ns",
                           "cpu_port", "ports"});
  if (reader.has("program")) {
    throw ConfigError(reader.at("program"), "an unknown key", "write \"pipeline\" instead");
  }
  reader.only(keys);
  read_settings(reader, "nagi-switch", config);
  config.pipeline = reader.text("pipeline");
  config.entries = optional_text(reader, "entries");
  config.digests = optional_text(reader, "digests");
  config.queues = optional_text(reader, "queues");
  if (is_given(reader, "queue_interval_ns")) {
    config.queue_interval = Duration{
        static_cast<std::int64_t>(reader.whole("queue_interval_ns", min_interval, max_interval))};
  }
  std::set<Port> numbers;
  std::set<std::string> used_names;
  const json& ports = reader.array("ports");
  if (ports.empty()) throw ConfigError(reader.at("ports"), "no ports", "list at least one port");
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const auto where = reader.at("ports") / i;
    config.ports.push_back(read_port({ports[i], where}, medium, used_names));
    const Port number = config.ports.back().number;
    if (!numbers.insert(number).second) {
      throw ConfigError(where / "number", "two ports have the number " + std::to_string(number),
                        "give each port a number of its own");
    }
  }
  if (is_given(reader, "cpu_port")) {
    config.cpu_port = static_cast<Port>(reader.whole("cpu_port", 0, max_ports - 1));
    if (numbers.contains(*config.cpu_port)) {
      throw ConfigError(reader.at("cpu_port"), "a port in \"ports\" has the same number",
                        "give the controller's port a number of its own");
    }
  }
  return config;
}

}  // namespace

SwitchConfig read_config(const runtime::JsonSource& source, Medium medium) {
  try {
    return read(ObjectReader(source.value(), json::json_pointer()), medium);
  } catch (const ConfigError& error) {
    throw source.located(error);
  }
}

std::vector<std::string_view> queue_keys() {
  return {"rate_bps", "rate_pps", "overhead_bytes", "depth_packets", "depth_bytes"};
}

void read_queue(const ObjectReader& reader, QueueConfig& queue) {
  const auto plain = [](std::uint64_t value) { return value; };
  const auto bytes = [](std::uint64_t value) { return nagi::Bytes{value}; };
  read_limit(reader, "rate_bps", model::bounds::rate_bps, queue.rates.bits,
             [](std::uint64_t value) { return Bitrate{value}; });
  read_limit(reader, "rate_pps", {1, max_packet_rate}, queue.rates.packets, plain);
  read_limit(reader, "depth_packets", model::bounds::queue_packets, queue.depth_packets, plain);
  read_limit(reader, "depth_bytes", model::bounds::queue_bytes, queue.depth_bytes, bytes);
  if (reader.has("overhead_bytes")) {
    queue.rates.overhead =
        is_given(reader, "overhead_bytes")
            ? nagi::Bytes{reader.whole("overhead_bytes", model::bounds::overhead_bytes)}
            : nagi::Bytes{};
  }
}

json to_json(const QueueConfig& queue) {
  const auto or_null = [](const auto& value) { return value ? json(*value) : json(); };
  return {{"rate_bps", queue.rates.bits ? json(queue.rates.bits->bits_per_second) : json()},
          {"rate_pps", or_null(queue.rates.packets)},
          {"overhead_bytes", queue.rates.overhead.count},
          {"depth_packets", or_null(queue.depth_packets)},
          {"depth_bytes", queue.depth_bytes ? json(queue.depth_bytes->count) : json()},
          {"priorities", queue.priorities}};
}

}  // namespace nagi::p4
