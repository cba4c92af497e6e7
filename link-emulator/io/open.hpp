// SPDX-License-Identifier: Apache-2.0
//
// Opening an interface by the best packet I/O that works on it.
#pragma once

#include <memory>
#include <string>

#include "io/port.hpp"

namespace nagi::io {

enum class Choice { best, af_xdp, af_packet };

struct Opened {
  std::unique_ptr<Port> port;
  std::string fallback;  // why it is not AF_XDP, if the choice was left; else empty
};

/// Throws std::system_error if the interface cannot be opened as chosen; EBUSY if another program
/// takes its packets.
Opened open_port(const std::string& interface, FramePool& pool, Choice choice);

}  // namespace nagi::io
