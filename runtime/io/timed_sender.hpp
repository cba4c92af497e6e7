// SPDX-License-Identifier: Apache-2.0
//
// Sending frames at instants that are yet to come: the kernel keeps them and sends each at its own
// (SO_TXTIME in socket(7)). The interface must have sch_fq for that, with `timer_slack 0`.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/descriptor.hpp"
#include "io/frame_pool.hpp"
#include "io/port.hpp"

namespace nagi::io {

/// A frame, and when it is to be sent (CLOCK_MONOTONIC, ns).
struct Timed {
  Frame frame;
  std::int64_t monotonic_ns = 0;
};

class TimedSender {
 public:
  /// Throws std::system_error if the interface cannot be sent on.
  TimedSender(const std::string& interface, FramePool& pool);

  /// Hands frames to the kernel, with the instants to send them at; their slots go back to the
  /// pool. Returns how many it did not take.
  std::uint64_t send(std::span<const Timed> frames);

 private:
  FramePool& pool_;
  Descriptor socket_;
};

}  // namespace nagi::io
