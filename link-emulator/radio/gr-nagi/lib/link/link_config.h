/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <string>

#include "model/direction.hpp"

namespace gr::nagi {

/// Reads a direction's configuration. Throws std::invalid_argument, naming the key and the cure.
::nagi::model::DirectionConfig read_link_config(const std::string& json);

}  // namespace gr::nagi
