// SPDX-License-Identifier: Apache-2.0
//
// Packet I/O over an AF_PACKET socket with recvmmsg and sendmmsg: works on every interface of every
// kernel, at two system calls a batch. See packet(7).
#pragma once

#include <memory>

#include "io/port.hpp"

namespace nagi::io {

/// Opens `interface`, promiscuous, for frames of all protocols that come in. Needs CAP_NET_RAW.
/// Throws std::system_error with what failed.
std::unique_ptr<Port> open_af_packet(const std::string& interface, FramePool& pool);

}  // namespace nagi::io
