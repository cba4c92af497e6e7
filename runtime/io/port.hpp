// SPDX-License-Identifier: Apache-2.0
//
// One network interface as a source and sink of whole Ethernet frames. Every kind of packet I/O
// stands behind this interface; whoever moves frames need not know which.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "io/frame_pool.hpp"

namespace nagi::io {

/// A frame in a slot of the pool: Ethernet header to the end of the payload, without FCS.
struct Frame {
  Slot slot = 0;
  std::uint16_t offset = 0;  // where in the slot it begins
  std::uint32_t length = 0;
};

/// A frame that came in, and when the kernel saw it (CLOCK_MONOTONIC, ns).
struct Arrival {
  Frame frame;
  std::int64_t monotonic_ns = 0;
};

struct PortCounters {
  std::uint64_t received = 0;  // handed on
  std::uint64_t sent = 0;
  std::uint64_t socket_drops = 0;  // lost between the wire and us: the socket's buffer was full
  std::uint64_t oversized =
      0;  // discarded, longer than the MTU: somebody merges segments (GRO, TSO)
  std::uint64_t send_failures = 0;  // frames the kernel would not take
};

class Port {
 public:
  Port() = default;
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  virtual ~Port() = default;

  [[nodiscard]] virtual const std::string& interface() const = 0;
  /// Which kind of packet I/O this is: "af_packet", "af_xdp generic", ...
  [[nodiscard]] virtual const std::string& kind() const = 0;
  /// Becomes readable when frames wait.
  [[nodiscard]] virtual int descriptor() const = 0;
  /// Whether asking for frames in vain costs next to nothing, as no system call is needed.
  [[nodiscard]] virtual bool is_free_to_ask() const = 0;
  /// Appends what waits, at most one batch, to `arrivals`; slots come from the pool. Returns false
  /// when nothing more waits. Throws std::system_error if the interface is gone.
  virtual bool receive(std::vector<Arrival>& arrivals) = 0;
  /// Sends the frames in order, and returns when the kernel has them. Their slots go back to the
  /// pool, some of them later.
  virtual void send(const std::vector<Frame>& frames) = 0;
  /// Counters up to now.
  [[nodiscard]] virtual PortCounters counters() = 0;
};

}  // namespace nagi::io
