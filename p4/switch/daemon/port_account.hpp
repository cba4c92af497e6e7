// SPDX-License-Identifier: Apache-2.0
//
// The counters of a port for the file `account`. In addition to the counts of the queues, they are
// how late nagi-switch received packets and passed packets to the kernel (hand-over), and the rate
// that the port achieved while packets waited.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/units.hpp"
#include "service/histogram.hpp"
#include "switch/daemon/switch.hpp"

namespace nagi::p4 {

/// Measures the rate of a port over backlogged intervals. In such an interval, each transmission
/// begins at the end of the previous one; the interval lasts from the first hand-over to the last.
/// Intervals shorter than `shortest` are left out, because the error of the hand-overs at both ends
/// is too large for them.
class AchievedRate {
 public:
  static constexpr Duration shortest = std::chrono::milliseconds(100);

  struct Sum {
    std::uint64_t intervals = 0;
    std::uint64_t packets = 0;
    nagi::Bytes bytes;  // bytes that the rate counts: with overhead
    Duration length{};
  };

  /// Record the hand-over of a packet.
  void add(const Departure& departure, Instant handed_over) {
    if (!departure.follows) {
      end();
      begun_ = handed_over;
    } else {
      ++current_.packets;
      current_.bytes += departure.counted;
    }
    last_ = handed_over;
  }
  /// End the current interval, because a transmission did not follow, or because the rate changes.
  void end() {
    sum_ = sum();
    current_ = {};
    begun_ = last_;
  }
  /// Return the sum over all intervals, including the current one.
  [[nodiscard]] Sum sum() const {
    if (last_ - begun_ < shortest) return sum_;
    Sum all = sum_;
    ++all.intervals;
    all.packets += current_.packets;
    all.bytes += current_.bytes;
    all.length += last_ - begun_;
    return all;
  }

 private:
  Sum sum_;      // over the intervals that have ended
  Sum current_;  // packets and bytes of the current interval
  Instant begun_{};
  Instant last_{};
};

class PortAccount {
 public:
  /// Record the arrival of a frame. `late` is the time by which the switch had already passed the
  /// frame's timestamp.
  void came(Duration late) { arrival_lateness_.add(late.count()); }
  /// Record that a frame was passed to the kernel.
  void handed_over(const Departure& departure, Instant at) {
    const std::int64_t late = (at - departure.at).count();
    added_delay_.add(late);
    if (late > late_event_ns) ++late_events_;
    rate_.add(departure, at);
  }
  /// Record a change of the port's queue.
  void changed(const QueueConfig& queue, Instant at);

  /// Return the counters of a port up to now.
  [[nodiscard]] nlohmann::json to_json(const Switch& p4_switch, std::size_t port) const;

 private:
  static constexpr std::int64_t late_event_ns = 1'000'000;

  runtime::Histogram added_delay_;       // ns between due time and hand-over
  runtime::Histogram arrival_lateness_;  // ns by which the switch had passed the time of an arrival
  std::uint64_t late_events_ = 0;
  AchievedRate rate_;
  nlohmann::json changes_ = nlohmann::json::array();
};

/// Return the counters of the P4 program, which do not belong to a port: packets by outcome.
nlohmann::json program_account(const Switch& p4_switch);

}  // namespace nagi::p4
