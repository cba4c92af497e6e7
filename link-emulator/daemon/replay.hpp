// SPDX-License-Identifier: Apache-2.0
//
// Replay: recorded arrivals pass through the model of a configuration again, without a clock. The
// results are written as another file of records. If it differs from the recorded file, the
// emulator did not follow the configuration.
#pragma once

#include <string>

#include "daemon/config.hpp"

namespace nagi::daemon {

/// Pass the arrivals in the file `recorded` through the links and media of `config`. Write the
/// records to the file `output`, direction by direction, in the order of arrival. Throws
/// InputError.
void replay(const Config& config, const std::string& recorded, const std::string& output);

}  // namespace nagi::daemon
