// SPDX-License-Identifier: Apache-2.0
//
// The configuration file of nagi-switch.
//
//   {"schema_version": 1,
//    ...                                keys that all programs with interfaces have:
//                                       runtime/service/settings.hpp
//    "pipeline": "edge.json",           the P4 program for v1model, compiled by p4c
//    "entries": "entries.jsonl",        operations to perform at the start, one per line:
//                                       operations.hpp
//    "digests": "digests.jsonl",        log of digests, which packets send to the controller:
//                                       logs.hpp
//    "queues": "queues.jsonl",          log of queue depths over time: logs.hpp
//    "queue_interval_ns": 10000000,     interval of the log of queue depths
//    "cpu_port": 255,                   the controller's port, which has no interface. The request
//                                       "events" returns the packets that leave by this port,
//                                       "packet_out" sends packets into it
//    "ports": [{"number": 1,            number in the program: 0 to 510
//               "interface": "p1",      only for `run`
//               "in": "1.pcap",         only for `replay`: capture of the arriving packets
//               "out": "1.out.pcapng",  only for `replay`: file for the departing packets. "in" or
//                                       "out" may be missing
//               "rate_bps": 10000000,   bits of IP per second (frames without Ethernet's 14 bytes)
//               "rate_pps": 1000,       packets per second; with both rates, the slower one applies
//               "overhead_bytes": 0,    bytes that rate_bps counts in addition to a packet
//               "depth_packets": 100,   maximum in each queue; unlimited if missing
//               "depth_bytes": 100000,
//               "priorities": 1}]}      number of queues; the higher number is served first
//
// Required keys are "pipeline" and "ports", and in each port "number" and the keys for `run` or
// `replay`. Other keys may be missing or null.
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
  std::string interface;  // empty for replay and simulate
  std::string in;         // paths of captures; empty without one
  std::string out;
  QueueConfig queue;
};

struct SwitchConfig : runtime::ServiceSettings {
  // Paths of files. All except `pipeline` are empty if the file is not configured.
  std::string pipeline;
  std::string entries;
  std::string digests;
  std::string queues;
  Duration queue_interval = std::chrono::milliseconds(10);
  std::optional<Port> cpu_port;
  std::vector<PortConfig> ports;
};

/// Sources and destinations of packets: for run, replay and simulate.
enum class Medium { interfaces, captures, requests };

/// Read the configuration for a command. Throws InputError with file, line and key.
SwitchConfig read_config(const runtime::JsonSource& source, Medium medium);

/// Return the keys for rates, overhead and depths of a port.
std::vector<std::string_view> queue_keys();
/// Read the rates, overhead and depths that an object has into `queue`; null removes a limit. Keys
/// that are missing leave their values in `queue` unchanged. Throws ConfigError.
void read_queue(const ObjectReader& reader, QueueConfig& queue);
/// Return rates, overhead and depths as JSON.
nlohmann::json to_json(const QueueConfig& queue);

}  // namespace nagi::p4
