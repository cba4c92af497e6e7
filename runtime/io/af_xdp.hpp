// SPDX-License-Identifier: Apache-2.0
//
// Packet I/O over an AF_XDP socket: frames come and go through rings in shared memory, so that
// receiving costs no system call and sending one a batch. A small eBPF program, which goes with the
// socket, sends every frame of the interface there and stamps it. See
// Documentation/networking/af_xdp.rst of the kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "io/port.hpp"

namespace nagi::io {

/// What all AF_XDP ports of a pool share: its registered slots, known to the kernel.
class SharedMemory;

/// Opens `interface` in the fastest mode its driver offers: zero-copy, driver, generic. Needs
/// CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF. Throws std::system_error with what failed.
/// `receive_ring`, a power of two: frames it can hold until they are received. `memory` is made by
/// the first port of a pool, and lives as long as the last.
std::unique_ptr<Port> open_af_xdp(const std::string& interface, FramePool& pool,
                                  std::uint32_t receive_ring, std::weak_ptr<SharedMemory>& memory);

/// How many registered slots such a port holds for what may come in and for what has been sent.
std::size_t registered_slots_a_port(std::uint32_t receive_ring);

}  // namespace nagi::io
