// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "switch/daemon/config.hpp"

namespace nagi::p4 {

/// Run the switch on captures: packets enter at the times of their timestamps, in this order over
/// all ports (at equal times, in the order of the configuration). Write the departures to captures
/// (pcapng) with their times, and the account. There is no clock: the same files always give the
/// same results. Time 0 is that of the first packet, or `epoch_realtime_ns`. Throws InputError.
void replay(const SwitchConfig& config);

}  // namespace nagi::p4
