// SPDX-License-Identifier: Apache-2.0
#include "daemon/privileges.hpp"

#include <cap-ng.h>
#include <spdlog/spdlog.h>
#include <sched.h>
#include <sys/prctl.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace nagi::daemon {

namespace {
// Above ordinary real-time programs' default of 1, well below the kernel's own threads at 50.
constexpr int realtime_priority = 20;
}  // namespace

std::string take_realtime_priority() {
  sched_param parameters{};
  parameters.sched_priority = realtime_priority;
  if (sched_setscheduler(0, SCHED_FIFO, &parameters) == 0) return "SCHED_FIFO";
  spdlog::warn("runs at normal priority and will be less exact: {}; run it with CAP_SYS_NICE",
               std::strerror(errno));
  return "SCHED_OTHER";
}

void die_with_parent() { prctl(PR_SET_PDEATHSIG, SIGTERM); }

void drop_privileges() {
  capng_clear(CAPNG_SELECT_CAPS);
  capng_update(CAPNG_ADD, static_cast<capng_type_t>(CAPNG_EFFECTIVE | CAPNG_PERMITTED),
               CAP_NET_ADMIN);
  if (capng_apply(CAPNG_SELECT_CAPS) != 0) spdlog::warn("could not give up all capabilities");
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

}  // namespace nagi::daemon
