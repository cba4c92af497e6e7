// SPDX-License-Identifier: Apache-2.0
//
// What a link's core is told before it carries packets, by its registers (registers.yaml).
#pragma once

#include <array>
#include <cstdint>

#include "daemon/fpga_protocol.hpp"
#include "model/direction.hpp"
#include "simulation/core.hpp"
#include "simulation/requests.hpp"

namespace nagi::fpga {

/// Throws InputError if the core is no core of this register map.
void require_known(Core& core);

/// Configures the core and enables it. Throws InputError if it lacks what is asked for.
void configure(Core& core, const LinkConfiguration& configuration);

/// What a direction has counted up to now. Throws std::runtime_error if the core lost records or
/// took a frame for bad, which it may not here.
daemon::fpga::CountsOf count(Core& core, std::size_t direction);
/// Keeps the counters of this instant for count().
void latch(Core& core);

}  // namespace nagi::fpga
