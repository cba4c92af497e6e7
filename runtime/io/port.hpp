// SPDX-License-Identifier: Apache-2.0
//
// The interface of all kinds of packet I/O: a network interface as a source and sink of complete
// Ethernet frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "io/frame_pool.hpp"

namespace nagi::io {

/// A frame in a slot of the pool, from the Ethernet header to the end of the payload, without FCS.
struct Frame {
  Slot slot = 0;
  std::uint16_t offset = 0;  // offset of the frame in the slot
  std::uint32_t length = 0;
};

/// A received frame with the kernel's timestamp (CLOCK_MONOTONIC, ns).
struct Arrival {
  Frame frame;
  std::int64_t monotonic_ns = 0;
};

struct PortCounters {
  std::uint64_t received = 0;  // frames returned by receive()
  std::uint64_t sent = 0;
  std::uint64_t socket_drops = 0;  // frames lost because the socket's buffer was full
  std::uint64_t oversized =
      0;  // discarded frames that are longer than the MTU, because of merged segments (GRO, TSO)
  std::uint64_t send_failures = 0;  // frames that the kernel refused
};

class Port {
 public:
  Port() = default;
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  virtual ~Port() = default;

  [[nodiscard]] virtual const std::string& interface() const = 0;
  /// Return the kind of packet I/O: "af_packet", "af_xdp generic", ...
  [[nodiscard]] virtual const std::string& kind() const = 0;
  /// Return a descriptor that is readable while frames wait.
  [[nodiscard]] virtual int descriptor() const = 0;
  /// Return whether receive() costs nearly nothing if no frame waits, because receive() needs no
  /// system call.
  [[nodiscard]] virtual bool is_cheap_to_read() const = 0;
  /// Append the waiting frames, at most one batch, to `arrivals`; their slots come from the pool.
  /// Return false if no further frame waits. Throws std::system_error if the interface no longer
  /// exists.
  virtual bool receive(std::vector<Arrival>& arrivals) = 0;
  /// Send the frames in order, and return when the kernel has them. Their slots return to the pool,
  /// some of them only after a later call.
  virtual void send(const std::vector<Frame>& frames) = 0;
  /// Return the current counters.
  [[nodiscard]] virtual PortCounters counters() = 0;
};

}  // namespace nagi::io
