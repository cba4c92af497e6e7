// SPDX-License-Identifier: Apache-2.0
//
// Packet I/O over an AF_XDP socket: frames come and go through rings in shared memory, so that
// receiving costs no system call and sending one a batch. A small eBPF program, which goes with the
// socket, sends every frame of the interface there and stamps it. See
// Documentation/networking/af_xdp.rst of the kernel.
#pragma once

#include <memory>

#include "io/port.hpp"

namespace nagi::io {

/// How many registered slots a port holds for what may come in and for what has been sent.
constexpr std::size_t registered_slots_a_port = 4096 + 1024;

/// What all AF_XDP ports of a pool share: its registered slots, known to the kernel.
class SharedMemory;

/// Opens `interface` in the fastest mode its driver offers: zero-copy, driver, generic. Needs
/// CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF. Throws std::system_error with what failed.
/// `memory` is made by the first port of a pool, and lives as long as the last.
std::unique_ptr<Port> open_af_xdp(const std::string& interface, FramePool& pool,
                                  std::weak_ptr<SharedMemory>& memory);

}  // namespace nagi::io
