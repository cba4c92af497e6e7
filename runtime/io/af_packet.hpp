// SPDX-License-Identifier: Apache-2.0
//
// Packet I/O over an AF_PACKET socket with recvmmsg and sendmmsg. It works on every interface of
// every kernel and costs two system calls per batch. See packet(7).
#pragma once

#include <memory>

#include "io/port.hpp"

namespace nagi::io {

/// Open `interface` in promiscuous mode for incoming frames of all protocols. Needs CAP_NET_RAW.
/// Throws std::system_error with the failed operation.
std::unique_ptr<Port> open_af_packet(const std::string& interface, FramePool& pool);

}  // namespace nagi::io
