// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "switch/daemon/config.hpp"

namespace nagi::p4 {

/// Gives the switch the packets of captures at the instants of their stamps, whichever the port, in
/// the order of those (at the same instant, in that of the configuration), and writes what leaves
/// to captures (pcapng), with the instants at which it left, and the account. No clock: the same
/// files give the same files. Instant 0 is the first packet's, or `epoch_realtime_ns`. Throws
/// InputError.
void replay(const SwitchConfig& config);

}  // namespace nagi::p4
