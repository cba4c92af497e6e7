// SPDX-License-Identifier: Apache-2.0
//
// What tells a program to stop: SIGTERM, SIGINT, and the end of the program that started it.
#pragma once

#include <sys/prctl.h>
#include <sys/signalfd.h>

#include <csignal>

#include "io/descriptor.hpp"

namespace nagi::io {

/// SIGTERM and SIGINT as something to read; they do nothing else any more.
inline Descriptor stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  return Descriptor(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

/// Sends this program SIGTERM if the one that started it dies.
inline void die_with_parent() { prctl(PR_SET_PDEATHSIG, SIGTERM); }

}  // namespace nagi::io
