// SPDX-License-Identifier: Apache-2.0
//
// The configuration of a link's core through its registers (registers.yaml), before it carries
// packets.
#pragma once

#include <array>
#include <cstdint>

#include "daemon/fpga_protocol.hpp"
#include "model/direction.hpp"
#include "simulation/core.hpp"
#include "simulation/requests.hpp"

namespace nagi::fpga {

/// Check that the core has this register map. Throws InputError if it does not.
void require_known(Core& core);

/// Configure and enable the core. Throws InputError if the core lacks a required feature.
void configure(Core& core, const LinkConfiguration& configuration);

/// Return the counters of a direction. Throws std::runtime_error if the core lost records or found
/// a bad frame, which must not happen in the simulation.
daemon::fpga::CountsOf count(Core& core, std::size_t direction);
/// Store the current counters for count().
void latch(Core& core);

}  // namespace nagi::fpga
