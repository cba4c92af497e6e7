// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>

#include "switch/daemon/config.hpp"

namespace nagi::p4 {

/// Run a switch without a network and without a clock. It reads one request per line and writes one
/// answer per line. The requests are those of a controller (controller.hpp), and
///
///   {"op": "packet", "port": 1, "bytes": "0a1b..."}   a packet arrives at a port
///   {"op": "advance", "us": 1000}                     time advances
///
/// Answers to these two requests have the packets that have left since the previous such answer:
///   "sent": [{"port": 2, "bytes": "0a1b...", "at_us": 1000}, ...]
/// Time begins at 0. The same requests always give the same answers. If a request is refused, the
/// answer has the error. The function returns at the end of the requests, or after "stop". Throws
/// InputError if the configuration is invalid.
void simulate(const SwitchConfig& config, std::istream& requests, std::ostream& answers);

}  // namespace nagi::p4
