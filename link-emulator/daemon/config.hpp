// SPDX-License-Identifier: Apache-2.0
//
// What nagi-link is asked to do: its configuration file.
//
//   {"schema_version": 1,
//    "seed": 2008,                          all random draws follow from it
//    "epoch_realtime_ns": 0,                instant 0 of the model; 0: when nagi-link starts
//    "offloads": "switch_off",              or "refuse": harmful offloads are an error
//    "io": "best",                          or "af_xdp", "af_packet": nothing else will do
//    "spin_ns": 20000,                      how long at most to wait awake for a packet's instant
//    "virtual_time": false,                 true: time stands still while this program runs
//    "cpu": 1,                              the processor to stay on; may be missing
//    "account": "links.json",               the account, written at the end
//    "packets": "packets.bin",              what became of every packet (packet_record.hpp)
//    "drops": "drops.pcapng",               every packet dropped (drop_log.hpp)
//    "control_socket": "link.sock",         all four may be missing: then there is none
//    "links": [{"name": "wireless", "id": 1, "a": "eth0", "b": "eth1",
//               "a_to_b": {...}, "b_to_a": {...}}]}        directions: see model/json.hpp
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/json_source.hpp"
#include "io/open.hpp"
#include "model/link.hpp"

namespace nagi::daemon {

enum class OffloadPolicy { switch_off, refuse };

struct LinkConfig {
  std::string name;
  std::uint32_t id = 0;  // names the link in random draws
  std::string a;         // interfaces
  std::string b;
  model::DirectionConfig a_to_b;
  model::DirectionConfig b_to_a;
};

struct Config {
  std::uint64_t seed = 0;
  std::int64_t epoch_realtime_ns = 0;
  OffloadPolicy offloads = OffloadPolicy::switch_off;
  io::Choice io = io::Choice::best;
  std::int64_t spin_ns = 20'000;
  bool virtual_time = false;
  std::optional<int> cpu;
  std::string account;
  std::string packets;
  std::string drops;
  std::string control_socket;
  std::vector<LinkConfig> links;
};

/// Reads a configuration. Throws InputError, naming file, line and key.
Config read_config(const JsonSource& source);

/// The links of a configuration, resolved: queues in BDPs have become packets.
nlohmann::json to_json(const Config& config);

}  // namespace nagi::daemon
