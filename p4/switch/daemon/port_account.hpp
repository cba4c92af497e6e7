// SPDX-License-Identifier: Apache-2.0
//
// The account of a port in nagi-switch, in addition to the traffic manager's counts: the lateness
// of hand-overs, and the rate achieved while packets waited.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/units.hpp"
#include "service/histogram.hpp"
#include "switch/daemon/switch.hpp"

namespace nagi::p4 {

/// Measures the rate over backlogged intervals, each from the hand-over of a packet at whose end
/// another follows at once to the hand-over of the last of these. Short intervals are inaccurate,
/// as each has the error of a hand-over at both ends.
class AchievedRate {
 public:
  static constexpr Duration shortest = std::chrono::milliseconds(100);

  struct Sum {
    std::uint64_t intervals = 0;
    std::uint64_t packets = 0;
    nagi::Bytes bytes;  // bytes that the server counted
    Duration length{};
  };

  /// Record the hand-over of a packet.
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
  /// End the interval, as another rate applies from now on.
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
  /// Record the arrival of a frame, `late` after the switch had passed its timestamp.
  void came(Duration late) { arrival_lateness_.add(late.count()); }
  void handed_over(const Departure& departure, Instant at) {
    const std::int64_t late = (at - departure.at).count();
    added_delay_.add(late);
    if (late > late_event_ns) ++late_events_;
    rate_.add(departure, at);
  }
  void changed(const QueueConfig& queue, Instant at);

  /// Return the account of a port of `whole` up to now.
  [[nodiscard]] nlohmann::json to_json(const Switch& whole, std::size_t port) const;

 private:
  static constexpr std::int64_t late_event_ns = 1'000'000;

  runtime::Histogram added_delay_;       // ns between due time and hand-over
  runtime::Histogram arrival_lateness_;  // ns by which the switch had passed the time of an arrival
  std::uint64_t late_events_ = 0;
  AchievedRate rate_;
  nlohmann::json changes_ = nlohmann::json::array();
};

/// Return the account of the whole program: packets by outcome.
nlohmann::json program_account(const Switch& whole);

}  // namespace nagi::p4
