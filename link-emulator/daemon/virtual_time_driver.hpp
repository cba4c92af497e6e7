// SPDX-License-Identifier: Apache-2.0
//
// Drives links where time stands still while this process runs, as in a guest of the virtual lab:
// system calls are what costs, so what is under way is handed to the kernel ahead, many frames at
// once, each with the instant at which it is to be sent.
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
  /// Throws std::system_error if the kernel cannot send at instants.
  VirtualTimeDriver(const std::vector<LinkDirection*>& directions, const runtime::RealTime& time,
                    io::FramePool& pool);

  /// For how long frames need not be looked at; nothing: frames cannot be handed over ahead.
  [[nodiscard]] Duration lookahead() const;
  /// Takes in all that has come, and hands over what is under way. Only where there is lookahead.
  runtime::Served serve_ahead();

  /// Adds what was sent past a port to its counters.
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
