// SPDX-License-Identifier: Apache-2.0
//
// Privileges for exact timing, and the loss of privileges once the interfaces are open.
#pragma once

#include <optional>
#include <string>

namespace nagi::runtime {

/// The scheduling of this process, for the account.
struct Privileges {
  std::string scheduling;      // "SCHED_FIFO", or "SCHED_OTHER" if the kernel refused that
  bool memory_locked = false;  // true if all pages stay in memory
  std::optional<int> cpu;      // the processor to which the process is bound, if any
};

/// Return whether a kernel, given its release from uname(2), has the fair server (from 6.12 on).
/// The fair server stops a SCHED_FIFO process that never sleeps for a part of the time, but only if
/// other processes want to run. Older kernels stop such a process in any case.
bool has_fair_server(const std::string& kernel_release);
std::string kernel_release();

/// Request real-time scheduling (SCHED_FIFO), so that other programs do not delay packets, locked
/// memory, and processor `cpu`, if given. Log what the kernel refuses, with the cure.
Privileges request_privileges(std::optional<int> cpu);

/// Throw InputError if a `user` is given and this process cannot change its user.
void require_root_for(const std::string& user);

/// Change this thread to `user`, if given, without supplementary groups. Keep only CAP_NET_ADMIN
/// (to restore offloads) and CAP_IPC_LOCK (to keep memory locked). Start other threads after this
/// call. Files that were created before, such as the control socket, keep their owner; the process
/// that started this one removes them. Update `privileges` if memory cannot stay locked. Throws
/// std::runtime_error if the user cannot be changed.
void drop_privileges(const std::string& user, Privileges& privileges);

}  // namespace nagi::runtime
