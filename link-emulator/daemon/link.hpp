// SPDX-License-Identifier: Apache-2.0
//
// A running link: the ports at its two ends, and both directions between them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "daemon/link_direction.hpp"
#include "io/port.hpp"

namespace nagi::daemon {

struct Link {
  std::string name;
  std::uint32_t id;
  io::Port* a;
  io::Port* b;
  std::unique_ptr<LinkDirection> forward;
  std::unique_ptr<LinkDirection> backward;
};

}  // namespace nagi::daemon
