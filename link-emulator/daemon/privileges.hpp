// SPDX-License-Identifier: Apache-2.0
//
// Giving up what is no longer needed once the interfaces are open.
#pragma once

namespace nagi::daemon {

/// Ends this program if the one that started it dies.
void die_with_parent();

/// Keeps CAP_NET_ADMIN (to put offloads back) and nothing else, for good.
void drop_privileges();

}  // namespace nagi::daemon
