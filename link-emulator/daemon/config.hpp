// SPDX-License-Identifier: Apache-2.0
//
// The configuration file of nagi-link.
//
//   {"schema_version": 1,
//    ...                                    the keys of all services; see service/settings.hpp of
//                                           runtime
//    "packets": "packets.bin",              file for records of packets (packet_record.hpp);
//                                           optional
//    "transmissions": "transmissions.bin",  file for records of the transmissions of radios and of
//                                           links with ARQ (transmission_record.hpp); optional
//    "links": [{"name": "wireless", "id": 1,
//               "a": "eth0", "b": "eth1",                  forward leads from a to b
//               "forward": {...}, "backward": {...},       see model/direction_json.hpp
//               "sockets": {"forward": 3, "backward": 4}}]}  only for radios: inherited sockets
//                                                          (radio_socket.hpp)
//               "core": 3                                  only for links in an FPGA: an inherited
//                                                          socket (fpga_protocol.hpp)
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
  std::uint32_t id = 0;  // selects the link's random draws
  std::string a;         // interface at end a
  std::string b;         // interface at end b
  model::DirectionConfig forward;
  model::DirectionConfig backward;
  std::optional<int> socket_forward;  // descriptors of the sockets to radios
  std::optional<int> socket_backward;
  std::optional<int> core;  // descriptor of the socket to nagi-fpga
};

using MacAddress = std::array<std::uint8_t, 6>;

struct StationSettings {
  std::string name;
  std::string interface;
  std::optional<MacAddress> mac;  // MAC address of the host behind the station
};

struct MediumSettings {
  std::string name;
  std::uint32_t id = 0;  // selects the medium's random draws
  model::MediumConfig config;
  std::string monitor;  // path of a capture of all frames; empty for none
  std::vector<StationSettings> stations;

  /// Return whether the result depends on the flow to which a packet belongs.
  [[nodiscard]] bool distinguishes_flows() const {
    return std::holds_alternative<model::FqCoDel>(config.queue);
  }
};

struct Config : runtime::ServiceSettings {
  std::string packets;  // paths of record files; empty if they are not written
  std::string transmissions;
  std::vector<LinkConfig> links;
  std::vector<MediumSettings> media;
};

/// Read a configuration. Throws InputError with file, line and key.
Config read_config(const runtime::JsonSource& source);

/// Return the seed, the links and the media of a configuration as JSON; queues in BDPs are written
/// in packets.
nlohmann::json to_json(const Config& config);

}  // namespace nagi::daemon
