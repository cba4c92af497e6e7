// SPDX-License-Identifier: Apache-2.0
//
// The configuration keys of all programs that move frames between interfaces (nagi-link,
// nagi-switch). All keys except "seed" are optional:
//
//   "seed": 2008,                          seed of all random draws
//   "epoch_realtime_ns": 0,                instant 0 of the model; 0 means the start of the program
//   "offloads": "switch_off",              or "refuse": harmful offloads are an error
//   "io": "best",                          or "af_xdp" or "af_packet", to require it
//   "spin_ns": 20000,                      longest time to busy-wait for the time of a packet
//   "virtual_time": false,                 true if the clock stops while this program runs
//   "cpu": 1,                              processor to which the program is bound
//   "user": "nobody",                      user to change to when all interfaces are open, if root
//                                        starts the program
//   "account": "links.json",               file for the account, written at the end
//   "drops": "drops.pcapng",               file for all dropped packets (io/pcapng_file.hpp)
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

/// Return the keys listed above, and "schema_version".
std::vector<std::string_view> settings_keys();

/// Read the keys listed above into `settings`, after "schema_version", which must be 1. `program`
/// is the name of the program in errors. Throws ConfigError.
void read_settings(const ObjectReader& reader, const std::string& program,
                   ServiceSettings& settings);

}  // namespace nagi::runtime
