// SPDX-License-Identifier: Apache-2.0
//
// Opens interfaces with the fastest packet I/O that works on each of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "io/port.hpp"

namespace nagi::io {

enum class Choice { best, af_xdp, af_packet };

struct Opened {
  std::unique_ptr<Port> port;
  std::string fallback;  // the reason for not using AF_XDP with Choice::best, else empty
};

class SharedMemory;

/// Opens the interfaces of one pool.
class PortOpener {
 public:
  /// Create an opener. `receive_ring`, a power of two, is the number of frames that a port can hold
  /// until they are received.
  PortOpener(FramePool& pool, Choice choice, std::uint32_t receive_ring)
      : pool_(pool), choice_(choice), receive_ring_(receive_ring) {}

  /// Open an interface. Throws std::system_error if the interface cannot be opened as chosen, with
  /// EBUSY if another program still receives its packets after a second.
  Opened open(const std::string& interface);

 private:
  FramePool& pool_;
  Choice choice_;
  std::uint32_t receive_ring_;
  std::weak_ptr<SharedMemory> memory_;
};

/// Return the number of registered slots that a pool needs for `ports` ports and `in_flight` held
/// frames.
std::size_t registered_slots(std::size_t ports, std::uint32_t receive_ring, std::size_t in_flight,
                             Choice choice);

}  // namespace nagi::io
