// SPDX-License-Identifier: Apache-2.0
//
// Servers that receive and discard data.
#pragma once

#include <nlohmann/json.hpp>

#include "ends.hpp"

namespace nagi::applications {

/// Serve one TCP connection until its end or SIGTERM, and return the result.
nlohmann::json one_connection(const char* application, const Ends& ends);

/// Serve TCP connections until SIGTERM, and return the result.
nlohmann::json all_connections(const char* application, const Ends& ends);

}  // namespace nagi::applications
