// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "switch/daemon/config.hpp"

namespace nagi::p4 {

/// Pass the packets of captures through the switch. Packets of all ports enter in the order of
/// their timestamps; at equal times, in the order of the ports in the configuration. Write the
/// departing packets with their times to captures (pcapng), and the counters to the file `account`.
/// There is no clock, so the same files always give the same results. Time 0 is the timestamp of
/// the first packet, or `epoch_realtime_ns` of the configuration. Throws InputError.
void replay(const SwitchConfig& config);

}  // namespace nagi::p4
