// SPDX-License-Identifier: Apache-2.0
//
// Frames for tests, and a configuration of p4/edge.p4 that forwards them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "switch/daemon/config.hpp"
#include "switch/daemon/load.hpp"

namespace nagi::p4 {

inline const std::string edge_program = NAGI_P4_DIRECTORY "/edge.json";

/// Return an Ethernet frame with an IPv4 packet of `ip_bytes` from 10.0.1.1 to 10.0.NET.1, with an
/// unknown transport protocol.
inline std::vector<std::uint8_t> ipv4_frame(std::uint8_t net, std::size_t ip_bytes) {
  std::vector<std::uint8_t> frame(14 + ip_bytes);
  const std::uint8_t head[] = {2, 0, 0, 0, 0, 2,  2,   0, 0, 0,  0, 1, 8, 0,  0x45, 0, 0,
                               0, 0, 0, 0, 0, 64, 253, 0, 0, 10, 0, 1, 1, 10, 0,    0, 1};
  std::copy(std::begin(head), std::end(head), frame.begin());
  frame[16] = static_cast<std::uint8_t>(ip_bytes >> 8);
  frame[17] = static_cast<std::uint8_t>(ip_bytes);
  frame[32] = net;
  std::uint32_t sum = 0;
  for (std::size_t i = 14; i < 34; i += 2) {
    sum += static_cast<std::uint32_t>(frame[i] << 8 | frame[i + 1]);
  }
  sum = (sum & 0xffff) + (sum >> 16);
  sum = ~(sum + (sum >> 16)) & 0xffff;
  frame[24] = static_cast<std::uint8_t>(sum >> 8);
  frame[25] = static_cast<std::uint8_t>(sum);
  return frame;
}

/// Return the operation that routes 10.0.NET.0/24 to port NET.
inline nlohmann::json route(int net) {
  return {{"op", "table_add"},
          {"table", "ingress.ipv4_routes"},
          {"match", {"10.0." + std::to_string(net) + ".0/24"}},
          {"action", "ingress.forward"},
          {"data", {net, "02:00:00:00:00:0a", "02:00:00:00:00:0b", 1500}}};
}

/// Return a configuration with ports 1 and 2, without limits.
inline SwitchConfig two_ports() {
  SwitchConfig config;
  config.pipeline = edge_program;
  config.ports.resize(2);
  config.ports[0].number = 1;
  config.ports[1].number = 2;
  return config;
}

}  // namespace nagi::p4
