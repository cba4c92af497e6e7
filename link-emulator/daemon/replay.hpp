// SPDX-License-Identifier: Apache-2.0
//
// The model again, without a clock: recorded arrivals go through a configuration, and what becomes
// of them is written as a record of the same kind. If the two differ, the emulator did not do what
// that configuration says.
#pragma once

#include <string>

#include "daemon/config.hpp"

namespace nagi::daemon {

/// Reads the arrivals in `recorded` and writes, to `output`, what the links of `config` make of
/// them: direction by direction, in the order of arrival. Throws InputError.
void replay(const Config& config, const std::string& recorded, const std::string& output);

}  // namespace nagi::daemon
