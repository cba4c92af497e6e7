// SPDX-License-Identifier: Apache-2.0
//
// Taking what timing needs, and giving up what is no longer needed once the interfaces are open.
#pragma once

#include <string>

namespace nagi::daemon {

/// Ends this program if the one that started it dies.
void die_with_parent();

/// Asks for real-time scheduling (SCHED_FIFO), so that other programs do not delay packets. Returns
/// the scheduling that is now in effect, and says what to do if it was refused.
std::string take_realtime_priority();

/// Keeps CAP_NET_ADMIN (to put offloads back) and nothing else, for good.
void drop_privileges();

}  // namespace nagi::daemon
