// SPDX-License-Identifier: Apache-2.0
//
// Packet I/O over an AF_XDP socket: frames pass through rings in shared memory, so that receiving
// costs no system call, and sending costs one per batch. A small eBPF program redirects every frame
// of the interface to the socket and stamps it; the program is removed with the socket. See
// Documentation/networking/af_xdp.rst of the kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "io/port.hpp"

namespace nagi::io {

/// The memory of a pool's registered slots, which all AF_XDP ports of the pool share with the
/// kernel.
class SharedMemory;

/// Open `interface` in the fastest mode that its driver offers: zero-copy, driver, generic. Needs
/// CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF. `receive_ring`, a power of two, is the number of frames
/// that it can hold until they are received. The first port of a pool creates `memory`, which lives
/// as long as the last port. Throws std::system_error with the failed operation.
std::unique_ptr<Port> open_af_xdp(const std::string& interface, FramePool& pool,
                                  std::uint32_t receive_ring, std::weak_ptr<SharedMemory>& memory);

/// Return the number of registered slots that such a port holds for receiving and sending.
std::size_t registered_slots_a_port(std::uint32_t receive_ring);

}  // namespace nagi::io
