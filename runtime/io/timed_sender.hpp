// SPDX-License-Identifier: Apache-2.0
//
// Sending of frames at future times: the kernel holds the frames and sends each at its time
// (SO_TXTIME in socket(7)). The interface must have the queueing discipline fq with `timer_slack
// 0`.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/descriptor.hpp"
#include "io/frame_pool.hpp"
#include "io/port.hpp"

namespace nagi::io {

/// A frame with the time at which to send it (CLOCK_MONOTONIC, ns).
struct Timed {
  Frame frame;
  std::int64_t monotonic_ns = 0;
};

class TimedSender {
 public:
  /// Open an interface for sending. Throws std::system_error if that is not possible.
  TimedSender(const std::string& interface, FramePool& pool);

  /// Hand frames to the kernel with the times at which to send them; their slots return to the
  /// pool. Return the number of frames that the kernel refused.
  std::uint64_t send(std::span<const Timed> frames);

 private:
  FramePool& pool_;
  Descriptor socket_;
};

}  // namespace nagi::io
