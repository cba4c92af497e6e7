// SPDX-License-Identifier: Apache-2.0
#include "service/privileges.hpp"

#include <cap-ng.h>
#include <pwd.h>
#include <sched.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "base/text.hpp"
#include "io/input_error.hpp"
#include "io/stop_signals.hpp"

namespace nagi::runtime {

namespace {
// The priority is above 1, the default of ordinary real-time programs, and well below 50, that of
// the kernel's own threads.
constexpr int realtime_priority = 20;
}  // namespace

Privileges request_privileges(std::optional<int> cpu) {
  Privileges taken;
  sched_param parameters{};
  parameters.sched_priority = realtime_priority;
  taken.scheduling = "SCHED_OTHER";
  if (sched_setscheduler(0, SCHED_FIFO, &parameters) == 0) {
    taken.scheduling = "SCHED_FIFO";
  } else {
    spdlog::warn("runs at normal priority, so timing is less exact: {}; run it with CAP_SYS_NICE",
                 std::strerror(errno));
  }

  // Pages are locked when they are first used, because threads never use their whole stacks.
  taken.memory_locked = mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0;
  if (!taken.memory_locked) {
    spdlog::warn("memory is not locked: {}; run it with CAP_IPC_LOCK", std::strerror(errno));
  }

  if (cpu) {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(static_cast<std::size_t>(*cpu), &only);
    if (sched_setaffinity(0, sizeof only, &only) == 0) {
      taken.cpu = cpu;
    } else {
      spdlog::warn(
          "cannot be bound to processor {}: {}; give a processor that it may use, see taskset(1)",
          *cpu, std::strerror(errno));
    }
  }
  return taken;
}

bool has_fair_server(const std::string& kernel_release) {
  int major = 0;
  int minor = 0;
  std::sscanf(kernel_release.c_str(), "%d.%d", &major, &minor);
  return std::pair(major, minor) >= std::pair(6, 12);
}

std::string kernel_release() {
  utsname names{};
  uname(&names);
  return names.release;
}

void require_root_for(const std::string& user) {
  if (user.empty() || geteuid() == 0) return;
  throw InputError(
      "user: only root can become another user; start the program as root, or remove \"user\"");
}

void drop_privileges(const std::string& user, Privileges& privileges) {
  capng_get_caps_process();
  const auto had = [](unsigned capability) {
    return capng_have_capability(CAPNG_PERMITTED, capability) != 0;
  };
  const std::array kept = {std::pair(CAP_NET_ADMIN, had(CAP_NET_ADMIN)),
                           std::pair(CAP_IPC_LOCK, had(CAP_IPC_LOCK))};
  capng_clear(CAPNG_SELECT_CAPS);
  constexpr auto in_effect = static_cast<capng_type_t>(CAPNG_EFFECTIVE | CAPNG_PERMITTED);
  for (const auto& [capability, available] : kept) {
    if (available) capng_update(CAPNG_ADD, in_effect, static_cast<unsigned>(capability));
  }
  if (user.empty()) {
    if (capng_apply(CAPNG_SELECT_CAPS) != 0) spdlog::warn("could not give up all capabilities");
  } else {
    // Existing threads lose CAP_IPC_LOCK together with root, but mlockall() also locks memory that
    // they map later. Lift the limit.
    const rlimit unlimited{RLIM_INFINITY, RLIM_INFINITY};
    if (setrlimit(RLIMIT_MEMLOCK, &unlimited) != 0 && munlockall() == 0) {
      privileges.memory_locked = false;
      spdlog::warn("memory is no longer locked: {}; run it with CAP_SYS_RESOURCE",
                   std::strerror(errno));
    }
    const pid_t parent = getppid();
    const passwd* account = getpwnam(user.c_str());
    if (account == nullptr ||
        capng_change_id(static_cast<int>(account->pw_uid), static_cast<int>(account->pw_gid),
                        CAPNG_DROP_SUPP_GRP) != 0) {
      throw std::runtime_error("could not become user " + shortened(user));
    }
    io::die_with_parent();                    // the change of user cleared this
    if (getppid() != parent) raise(SIGTERM);  // the parent has died in between
  }
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

}  // namespace nagi::runtime
