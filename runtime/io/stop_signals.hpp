// SPDX-License-Identifier: Apache-2.0
//
// The signals that stop a program: SIGTERM, SIGINT, SIGHUP (its terminal or SSH connection was
// closed), and the end of its parent process.
#pragma once

#include <sys/prctl.h>
#include <sys/signalfd.h>

#include <csignal>

#include "io/descriptor.hpp"

namespace nagi::io {

/// Block SIGTERM, SIGINT and SIGHUP, and return a descriptor from which they can be read. SIGHUP
/// stays ignored if it was ignored before, as by nohup(1). SIGPIPE is ignored, so that a closed
/// pipe or connection is an ordinary error of a write.
inline Descriptor stop_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  struct sigaction hang_up{};
  if (sigaction(SIGHUP, nullptr, &hang_up) == 0 && hang_up.sa_handler != SIG_IGN) {
    sigaddset(&signals, SIGHUP);
  }
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  return Descriptor(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

/// Let the kernel send SIGTERM to this process when its parent process ends.
inline void die_with_parent() { prctl(PR_SET_PDEATHSIG, SIGTERM); }

}  // namespace nagi::io
