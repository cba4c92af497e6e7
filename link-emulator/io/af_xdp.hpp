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

/// Opens `interface` in the fastest mode its driver offers: zero-copy, driver, generic. Needs
/// CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF. Throws std::system_error with what failed.
std::unique_ptr<Port> open_af_xdp(const std::string& interface, FramePool& pool);

}  // namespace nagi::io
