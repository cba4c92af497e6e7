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

/// Returns why this process cannot become `user` later; empty if it can.
std::string trouble_with_user(const std::string& user);

/// Becomes `user`, if one is given, without supplementary groups. Keeps CAP_NET_ADMIN (to put
/// offloads back) and CAP_IPC_LOCK (or locked memory has a limit), and nothing else, for good. What
/// was made before, such as the control socket, still belongs to who started this process, and is
/// for him to remove. Throws std::runtime_error if it does not become `user`.
void drop_privileges(const std::string& user);

}  // namespace nagi::runtime
