// SPDX-License-Identifier: Apache-2.0
#include "daemon/privileges.hpp"

#include <cap-ng.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>

#include <csignal>

namespace nagi::daemon {

void die_with_parent() { prctl(PR_SET_PDEATHSIG, SIGTERM); }

void drop_privileges() {
  capng_clear(CAPNG_SELECT_CAPS);
  capng_update(CAPNG_ADD, static_cast<capng_type_t>(CAPNG_EFFECTIVE | CAPNG_PERMITTED),
               CAP_NET_ADMIN);
  if (capng_apply(CAPNG_SELECT_CAPS) != 0) spdlog::warn("could not give up all capabilities");
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

}  // namespace nagi::daemon
