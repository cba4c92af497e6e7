// SPDX-License-Identifier: Apache-2.0
//
// The driver for virtual time, in which the clock stops while this process runs, as in a guest of
// the virtual lab. Only system calls take time in such a guest. So the driver hands many frames at
// once to the kernel ahead of time, each with the time at which the kernel must send the frame.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.hpp"
#include "daemon/link_direction.hpp"
#include "io/frame_pool.hpp"
#include "io/port.hpp"
#include "io/timed_sender.hpp"
#include "service/clock.hpp"
#include "service/service.hpp"

namespace nagi::daemon {

class VirtualTimeDriver {
 public:
  /// Create the driver. Throws std::system_error if the kernel cannot send frames at given times.
  VirtualTimeDriver(const std::vector<LinkDirection*>& directions, const runtime::RealTime& time,
                    io::FramePool& pool);

  /// Return for how long arriving frames may wait, or 0 if frames cannot be handed over ahead of
  /// time.
  [[nodiscard]] Duration lookahead() const;
  /// Read all frames that have arrived, and hand over all transmitted packets. Call this only if
  /// lookahead() is above 0.
  runtime::Served serve_ahead();

  /// Add to the counters of a port the frames that this driver sent on its interface, without the
  /// port.
  void add_sent(const io::Port& port, io::PortCounters& count) const;

 private:
  struct Output {
    LinkDirection* direction;
    io::TimedSender sender;
    std::uint64_t sent = 0;
    std::uint64_t not_sent = 0;
  };

  void hand_over(Output& output, Instant now);

  std::vector<Output> outputs_;
  const runtime::RealTime& time_;
  std::vector<io::Timed> timed_;
};

}  // namespace nagi::daemon
