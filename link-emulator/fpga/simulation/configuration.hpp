// SPDX-License-Identifier: Apache-2.0
//
// Configuration of a core by its registers (registers.yaml), before the core carries packets; and
// its counters.
#pragma once

#include <array>
#include <cstdint>

#include "daemon/fpga_protocol.hpp"
#include "model/direction.hpp"
#include "simulation/core.hpp"
#include "simulation/requests.hpp"

namespace nagi::fpga {

/// Check that the core has the register map of nagi_registers.h. Throws InputError if it does not.
void require_known(Core& core);

/// Configure and enable the core. Throws InputError if the core lacks a required feature.
void configure(Core& core, const LinkConfiguration& configuration);

/// Return the counters of a direction, as stored by latch(). Throws std::runtime_error if the core
/// lost records or counted bad frames, because neither can happen in a correct simulation.
daemon::fpga::CountsOf count(Core& core, std::size_t direction);
/// Store the current counters for count().
void latch(Core& core);

}  // namespace nagi::fpga
