// SPDX-License-Identifier: Apache-2.0
//
// Packet I/O over an AF_XDP socket: frames pass through rings in shared memory, so that receiving
// costs no system call, and sending costs one per batch. A small eBPF program writes a time stamp
// in front of every frame, and redirects the frame to the socket. The program is removed together
// with the socket. See Documentation/networking/af_xdp.rst of the kernel.
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
/// that the port can hold until they are received. The first port of a pool creates `memory`, which
/// exists as long as any port of the pool. Throws std::system_error with the failed operation.
std::unique_ptr<Port> open_af_xdp(const std::string& interface, FramePool& pool,
                                  std::uint32_t receive_ring, std::weak_ptr<SharedMemory>& memory);

/// Return the number of registered slots that an AF_XDP port holds for receiving and sending.
std::size_t registered_slots_per_port(std::uint32_t receive_ring);

}  // namespace nagi::io
