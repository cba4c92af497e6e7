// SPDX-License-Identifier: Apache-2.0
//
// Opening an interface by the best packet I/O that works on it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "io/port.hpp"

namespace nagi::io {

enum class Choice { best, af_xdp, af_packet };

struct Opened {
  std::unique_ptr<Port> port;
  std::string fallback;  // why it is not AF_XDP, if the choice was left; else empty
};

class SharedMemory;

/// Opens the interfaces of one pool.
class PortOpener {
 public:
  /// `receive_ring`, a power of two: frames a port can hold until they are received.
  PortOpener(FramePool& pool, Choice choice, std::uint32_t receive_ring)
      : pool_(pool), choice_(choice), receive_ring_(receive_ring) {}

  /// Throws std::system_error if the interface cannot be opened as chosen; EBUSY if another program
  /// takes its packets, and goes on for a second.
  Opened open(const std::string& interface);

 private:
  FramePool& pool_;
  Choice choice_;
  std::uint32_t receive_ring_;
  std::weak_ptr<SharedMemory> memory_;
};

/// How many registered slots a pool should have for `ports` ports and `in_flight` frames on their
/// way at once.
std::size_t registered_slots(std::size_t ports, std::uint32_t receive_ring, std::size_t in_flight,
                             Choice choice);

}  // namespace nagi::io
