// SPDX-License-Identifier: Apache-2.0
//
// The configuration file of nagi-switch.
//
//   {"schema_version": 1,
//    ...                                keys of every program that moves frames: runtime's
//                                       service/settings.hpp
//    "pipeline": "edge.json",           the P4 program for v1model, compiled by p4c
//    "entries": "entries.jsonl",        initial operations, one per line: operations.hpp
//    "digests": "digests.jsonl",        digests, which packets send to the controller: logs.hpp
//    "queues": "queues.jsonl",          queue depth over time: logs.hpp
//    "queue_interval_ns": 10000000,     interval of the queues' log
//    "cpu_port": 255,                   the controller's port, which has no interface: "events"
//    returns
//                                       the packets that leave by it, "packet_out" sends packets
//                                       into it
//    "ports": [{"number": 1,            number in the program: 0 to 510
//               "interface": "p1",      for replay captures instead: "in": "1.pcap" for arrivals
//               and
//                                       "out": "1.out.pcapng" for departures; one may be missing;
//                                       for simulate neither
//               "rate_bps": 10000000,   bits of IP per second (frames without Ethernet's 14 bytes)
//               "rate_pps": 1000,       packets per second; with both rates, the slower one applies
//               "overhead_bytes": 0,    bytes that rate_bps counts in addition to a packet
//               "depth_packets": 100,   maximum in each queue; unlimited if missing
//               "depth_bytes": 100000,
//               "priorities": 1}]}      number of queues; the higher number is served first
//
// Only "pipeline" and "ports" are required, and in a port "number" and where packets come from or
// go to. Other keys may be missing or null.
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

constexpr Port max_ports = 511;  // port 511 drops packets

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

/// Sources and destinations of packets.
enum class Medium { interfaces, captures, requests };

/// Read a configuration. Throws InputError with file, line and key.
SwitchConfig read_config(const runtime::JsonSource& source, Medium medium);

/// Return the keys of rates, overhead and depths.
std::vector<std::string_view> queue_keys();
/// Read rates, overhead and depths into `queue`, of which other values stay; null removes one.
/// Throws ConfigError.
void read_queue(const ObjectReader& reader, QueueConfig& queue);
/// Return rates, overhead and depths as JSON.
nlohmann::json to_json(const QueueConfig& queue);

}  // namespace nagi::p4
