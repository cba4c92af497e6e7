// SPDX-License-Identifier: Apache-2.0
//
// The server of what sends datagrams.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "ends.hpp"

namespace nagi::applications {

/// Receives numbered datagrams until SIGTERM, and says what has come of probes. `codec` and
/// `playout_ns`: of a voice call.
nlohmann::json datagrams(const char* application, const Ends& ends, const std::string& codec,
                         std::uint64_t playout_ns);

}  // namespace nagi::applications
