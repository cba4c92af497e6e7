// SPDX-License-Identifier: Apache-2.0
//
// What the configuration of every program says that moves frames between interfaces (nagi-link,
// nagi-switch). All keys but "seed" may be missing:
//
//   "seed": 2008,                          all random draws follow from it
//   "epoch_realtime_ns": 0,                instant 0 of the model; 0: when the program starts
//   "offloads": "switch_off",              or "refuse": harmful offloads are an error
//   "io": "best",                          or "af_xdp", "af_packet": nothing else will do
//   "spin_ns": 20000,                      how long at most to wait awake for a packet's instant
//   "virtual_time": false,                 true: time stands still while this program runs
//   "cpu": 1,                              the processor to stay on
//   "user": "nobody",                      the user it becomes once all is open, if root starts it
//   "account": "links.json",               the account, written at the end
//   "drops": "drops.pcapng",               every packet dropped (io/pcapng_file.hpp)
//   "control_socket": "link.sock"          see control/control_socket.hpp
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/object_reader.hpp"
#include "io/open.hpp"

namespace nagi::runtime {

enum class OffloadPolicy { switch_off, refuse };

struct ServiceSettings {
  std::uint64_t seed = 0;
  std::int64_t epoch_realtime_ns = 0;
  OffloadPolicy offloads = OffloadPolicy::switch_off;
  io::Choice io = io::Choice::best;
  std::int64_t spin_ns = 20'000;
  bool virtual_time = false;
  std::optional<int> cpu;
  std::string user;
  std::string account;
  std::string drops;
  std::string control_socket;
};

/// The keys that are said above, and "schema_version".
std::vector<std::string_view> settings_keys();

/// Reads what is said above, after "schema_version", which must be 1. `program` is what errors call
/// the reader. Throws ConfigError.
void read_settings(const ObjectReader& reader, const std::string& program,
                   ServiceSettings& settings);

}  // namespace nagi::runtime
