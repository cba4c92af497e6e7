// SPDX-License-Identifier: Apache-2.0
//
// What tells a program to stop: SIGTERM, SIGINT, SIGHUP (its terminal or SSH connection is closed),
// and the end of the program that started it.
#pragma once

#include <sys/prctl.h>
#include <sys/signalfd.h>

#include <csignal>

#include "io/descriptor.hpp"

namespace nagi::io {

/// SIGTERM, SIGINT and SIGHUP as something to read; they do nothing else any more. nohup(1) has
/// SIGHUP ignored, which it stays. SIGPIPE is ignored: that nobody reads a log any more, or a
/// client is gone, is an error of a write like others.
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

/// Sends this program SIGTERM if the one that started it dies.
inline void die_with_parent() { prctl(PR_SET_PDEATHSIG, SIGTERM); }

}  // namespace nagi::io
