/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <string>

#include "model/direction.hpp"

namespace gr::nagi {

/// Return the configuration of a direction. Throws std::invalid_argument, naming the key and the
/// cure, if `json` is invalid.
::nagi::model::DirectionConfig read_link_config(const std::string& json);

}  // namespace gr::nagi
