// SPDX-License-Identifier: Apache-2.0
//
// What nagi-switch is asked to do: its configuration file.
//
//   {"schema_version": 1,
//    ...                                what every such program is told: runtime's
//                                       service/settings.hpp
//    "pipeline": "edge.json",           what p4c made of a P4 program for v1model
//    "entries": "entries.jsonl",        operations to begin with, one a line: operations.hpp
//    "digests": "digests.jsonl",        what packets tell the controller: logs.hpp
//    "queues": "queues.jsonl",          queue depth over time: logs.hpp
//    "queue_interval_ns": 10000000,     how often it is noted
//    "cpu_port": 255,                   the controller's port, which has no interface: what leaves
//                                       by it, events has; what packet_out has, comes in by it
//    "ports": [{"number": 1,            as the program knows it: 0 to 510
//               "interface": "p1",      for replay instead, captures: "in": "1.pcap", what comes,
//                                       and "out": "1.out.pcapng", what leaves; one may be missing;
//                                       for simulate nothing
//               "rate_bps": 10000000,   bits of IP a second (frames without Ethernet's 14 bytes)
//               "rate_pps": 1000,       packets a second; with both rates, the slower holds
//               "overhead_bytes": 0,    what rate_bps counts on top of a packet
//               "depth_packets": 100,   what may wait, in each queue; without: any number
//               "depth_bytes": 100000,
//               "priorities": 1}]}      queues; the higher number is served first
//
// All but "pipeline" and "ports" may be missing, in a port all but "number" and where packets come
// from or go to; what may be missing may also be null.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/json_source.hpp"
#include "program/machine.hpp"
#include "service/settings.hpp"
#include "traffic/output_port.hpp"

namespace nagi::p4 {

constexpr Port max_ports = 511;  // port 511 drops

struct PortConfig {
  Port number = 0;
  std::string interface;
  std::string in;
  std::string out;
  QueueConfig queue;
};

struct SwitchConfig : runtime::ServiceSettings {
  std::string pipeline;
  std::string entries;
  std::string digests;
  std::string queues;
  Duration queue_interval = std::chrono::milliseconds(10);
  std::optional<Port> cpu_port;
  std::vector<PortConfig> ports;
};

/// Where packets come from and go to.
enum class Medium { interfaces, captures, requests };

/// Reads a configuration. Throws InputError, naming file, line and key.
SwitchConfig read_config(const runtime::JsonSource& source, Medium medium);

/// The keys of rates, overhead and depths.
std::vector<std::string_view> queue_keys();
/// Reads rates, overhead and depths over what `queue` has; null takes one away.
/// Throws ConfigError.
void read_queue(const ObjectReader& reader, QueueConfig& queue);
/// The same, as JSON.
nlohmann::json to_json(const QueueConfig& queue);

}  // namespace nagi::p4
