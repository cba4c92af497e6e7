// SPDX-License-Identifier: Apache-2.0
//
// What nagi-switch notes of a port beside the traffic manager's own counts: how much later than due
// frames were handed over, and the rate at which they were while packets waited.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/units.hpp"
#include "service/histogram.hpp"
#include "switch/daemon/switch.hpp"

namespace nagi::p4 {

/// The rate over backlogged intervals: from the hand-over of a packet that ends when another
/// follows at once, to that of the last that does. Short intervals say little, as each has an error
/// of a hand-over at both ends.
class AchievedRate {
 public:
  static constexpr Duration shortest = std::chrono::milliseconds(100);

  struct Sum {
    std::uint64_t intervals = 0;
    std::uint64_t packets = 0;
    nagi::Bytes bytes;  // counted by the server
    Duration length{};
  };

  /// A packet was handed over at an instant.
  void add(const Departure& departure, Instant handed_over) {
    if (!departure.follows) {
      end();
      begun_ = handed_over;
    } else {
      ++going_.packets;
      going_.bytes += departure.counted;
    }
    last_ = handed_over;
  }
  /// Whatever follows belongs to another interval: another rate holds.
  void end() {
    sum_ = sum();
    going_ = {};
    begun_ = last_;
  }
  [[nodiscard]] Sum sum() const {
    if (last_ - begun_ < shortest) return sum_;
    Sum all = sum_;
    ++all.intervals;
    all.packets += going_.packets;
    all.bytes += going_.bytes;
    all.length += last_ - begun_;
    return all;
  }

 private:
  Sum sum_;
  Sum going_;
  Instant begun_{};
  Instant last_{};
};

class PortAccount {
 public:
  /// A frame came in, `late` after the switch had moved past the instant it is stamped with.
  void came(Duration late) { arrival_lateness_.add(late.count()); }
  void handed_over(const Departure& departure, Instant at) {
    const std::int64_t late = (at - departure.at).count();
    added_delay_.add(late);
    if (late > late_event_ns) ++late_events_;
    rate_.add(departure, at);
  }
  void changed(const QueueConfig& queue, Instant at);

  /// The account of a port of `whole`, as of now.
  [[nodiscard]] nlohmann::json to_json(const Switch& whole, std::size_t port) const;

 private:
  static constexpr std::int64_t late_event_ns = 1'000'000;

  runtime::Histogram added_delay_;       // ns from being due to being handed over
  runtime::Histogram arrival_lateness_;  // ns by which the switch had moved past an arrival
  std::uint64_t late_events_ = 0;
  AchievedRate rate_;
  nlohmann::json changes_ = nlohmann::json::array();
};

/// The account of the program as a whole: what became of packets, by cause.
nlohmann::json program_account(const Switch& whole);

}  // namespace nagi::p4
