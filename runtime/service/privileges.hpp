// SPDX-License-Identifier: Apache-2.0
//
// Taking what timing needs, and giving up what is no longer needed once the interfaces are open.
#pragma once

#include <optional>
#include <string>

namespace nagi::runtime {

/// How this process is run; it is part of the account.
struct Privileges {
  std::string scheduling;      // "SCHED_FIFO", or "SCHED_OTHER" where that was refused
  bool memory_locked = false;  // no page of ours is ever fetched back from a disk
  std::optional<int> cpu;      // the processor it stays on, if it does
};

/// Whether a kernel, by its release as uname(2) has it, leaves others their share beside a
/// SCHED_FIFO process that never sleeps, when they want it (the fair server, from 6.12 on), instead
/// of stopping that process whether they want it or not.
bool has_fair_server(const std::string& kernel_release);
std::string kernel_release();

/// Asks for real-time scheduling (SCHED_FIFO), so that other programs do not delay packets, for
/// locked memory, and to stay on processor `cpu`, if there is one. Says what was refused, and what
/// to do about it.
Privileges take_privileges(std::optional<int> cpu);

/// Throws InputError if a `user` is given and this process cannot become another one.
void require_root_for(const std::string& user);

/// Becomes `user`, if one is given, without supplementary groups. Keeps CAP_NET_ADMIN (to put
/// offloads back) and CAP_IPC_LOCK (or locked memory has a limit), and nothing else, for good, of
/// this thread: others are to be started later. Files made before, such as the control socket, keep
/// their owner; the process that started this one removes them. Changes `privileges` if memory
/// cannot stay locked. Throws std::runtime_error if it does not become `user`.
void drop_privileges(const std::string& user, Privileges& privileges);

}  // namespace nagi::runtime
