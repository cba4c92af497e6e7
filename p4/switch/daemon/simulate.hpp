// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>

#include "switch/daemon/config.hpp"

namespace nagi::p4 {

/// A switch by requests, a line each, and answers, a line each: no network, no clock. What a
/// controller may ask (controller.hpp), and
///
///   {"op": "packet", "port": 1, "bytes": "0a1b..."}   comes in by a port, now
///   {"op": "advance", "us": 1000}                     time goes on by so much
///
/// Both answer with what has left since the last answer to either, in order:
///   "sent": [{"port": 2, "bytes": "0a1b...", "at_us": 1000}, ...]
/// Time begins at 0. The same requests give the same answers. Ends with the requests, or after
/// stop. Throws InputError if the configuration is no good; a request that is refused is answered
/// with the error.
void simulate(const SwitchConfig& config, std::istream& requests, std::ostream& answers);

}  // namespace nagi::p4
