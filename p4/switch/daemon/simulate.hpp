// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>

#include "switch/daemon/config.hpp"

namespace nagi::p4 {

/// Run a switch that reads requests, one per line, and writes answers, one per line, without a
/// network or a clock. The requests are those of a controller (controller.hpp), and
///
///   {"op": "packet", "port": 1, "bytes": "0a1b..."}   a packet arrives at a port
///   {"op": "advance", "us": 1000}                     time advances
///
/// Both answer with the departures since the last answer to either, in order:
///   "sent": [{"port": 2, "bytes": "0a1b...", "at_us": 1000}, ...]
/// Time begins at 0. The same requests give the same answers. Returns at the end of the requests,
/// or after stop. A request that is refused is answered with the error. Throws InputError if the
/// configuration is invalid.
void simulate(const SwitchConfig& config, std::istream& requests, std::ostream& answers);

}  // namespace nagi::p4
