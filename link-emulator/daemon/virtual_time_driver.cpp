// SPDX-License-Identifier: Apache-2.0
#include "daemon/virtual_time_driver.hpp"

#include <algorithm>

namespace nagi::daemon {

VirtualTimeDriver::VirtualTimeDriver(const std::vector<LinkDirection*>& directions,
                                     const runtime::RealTime& time, io::FramePool& pool)
    : time_(time) {
  for (LinkDirection* direction : directions) {
    outputs_.push_back({direction, io::TimedSender(direction->out().interface(), pool)});
  }
}

Duration VirtualTimeDriver::lookahead() const {
  Duration minimum = Duration::max();
  for (const Output& output : outputs_) {
    minimum = std::min(minimum, output.direction->lookahead());
  }
  return minimum;
}

runtime::Served VirtualTimeDriver::serve_ahead() {
  const Instant now = time_.now();
  runtime::Served served;
  served.now_ns = time_.monotonic_ns(now);
  for (Output& output : outputs_) {
    LinkDirection& direction = *output.direction;
    // Read all frames: a remaining frame would wait until the next call, and may be due before
    // that.
    do {
      direction.advance(direction.read_arrivals(now));
    } while (direction.has_unread());
  }
  // Both directions of an FPGA advance together, so departures are known once all arrivals are
  // read.
  for (Output& output : outputs_) {
    LinkDirection& direction = *output.direction;
    direction.take_in_flight();
    direction.process_departures();
    hand_over(output, now);
    served.quiet = served.quiet && direction.model().held() == 0;
  }
  return served;
}

void VirtualTimeDriver::hand_over(Output& output, Instant now) {
  std::vector<model::Departure>& due = output.direction->due();
  if (due.empty()) return;
  timed_.clear();
  for (const model::Departure& departure : due) {
    const HeldFrame& held = output.direction->prepare_frame(departure);
    timed_.push_back({held.frame, time_.monotonic_ns(departure.at)});
    const std::int64_t late = (now - departure.at).count();
    if (late > 0) {
      output.direction->note_handed_over(held, departure, late);
    } else {
      output.direction->note_handed_over_ahead(held, departure);
    }
  }
  const std::uint64_t failed = output.sender.send(timed_);
  output.sent += timed_.size() - failed;
  output.not_sent += failed;
  due.clear();
}

void VirtualTimeDriver::add_sent(const io::Port& port, io::PortCounters& count) const {
  for (const Output& output : outputs_) {
    if (&output.direction->out() != &port) continue;
    count.sent += output.sent;
    count.send_failures += output.not_sent;
  }
}

}  // namespace nagi::daemon
