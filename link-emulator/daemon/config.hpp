// SPDX-License-Identifier: Apache-2.0
//
// What nagi-link is asked to do: its configuration file.
//
//   {"schema_version": 1,
//    ...                                    what every such program is told: runtime's
//                                           service/settings.hpp
//    "packets": "packets.bin",              what became of every packet (packet_record.hpp); may be
//                                           missing
//    "transmissions": "transmissions.bin",  what became of every transmission of links that
//                                           are radios or repeat what was lost
//                                           (transmission_record.hpp); may be missing
//    "links": [{"name": "wireless", "id": 1,
//               "a": "eth0", "b": "eth1",                  forward is from a to b
//               "forward": {...}, "backward": {...},       see model/direction_json.hpp
//               "sockets": {"forward": 3, "backward": 4}}]}  of directions that are radios:
//               inherited
//                                                          sockets (radio_socket.hpp)
//               "core": 3                                  of a link that an FPGA's core carries:
//                                                          an inherited socket (fpga_protocol.hpp)
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/json_source.hpp"
#include "model/direction.hpp"
#include "model/medium/medium.hpp"
#include "service/settings.hpp"

namespace nagi::daemon {

struct LinkConfig {
  std::string name;
  std::uint32_t id = 0;  // names the link in random draws
  std::string a;         // interfaces
  std::string b;
  model::DirectionConfig forward;
  model::DirectionConfig backward;
  std::optional<int> socket_forward;  // descriptors
  std::optional<int> socket_backward;
  std::optional<int> core;
};

using MacAddress = std::array<std::uint8_t, 6>;

struct StationSettings {
  std::string name;
  std::string interface;
  std::optional<MacAddress> mac;  // of the host behind it
};

struct MediumSettings {
  std::string name;
  std::uint32_t id = 0;  // as of links
  model::MediumConfig config;
  std::string monitor;
  std::vector<StationSettings> stations;

  /// Whether it matters to which flow a packet belongs.
  [[nodiscard]] bool tells_flows_apart() const {
    return std::holds_alternative<model::FqCoDel>(config.queue);
  }
};

struct Config : runtime::ServiceSettings {
  std::string packets;
  std::string transmissions;
  std::vector<LinkConfig> links;
  std::vector<MediumSettings> media;
};

/// Reads a configuration. Throws InputError, naming file, line and key.
Config read_config(const runtime::JsonSource& source);

/// The links of a configuration, resolved: queues in BDPs have become packets.
nlohmann::json to_json(const Config& config);

}  // namespace nagi::daemon
