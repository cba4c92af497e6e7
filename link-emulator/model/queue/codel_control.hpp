// SPDX-License-Identifier: Apache-2.0
//
// CoDel's control law (RFC 8289, section 5), for whatever queue it is applied to: once the sojourn
// time has been above `target` for an `interval`, packets are dropped, or marked, at intervals that
// shrink with the square root of their number, until it is below again.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "model/queue/queue.hpp"

namespace nagi::model {

struct CoDelParameters {
  Duration target{};
  Duration interval{};
  bool ecn = false;
  Bytes packet;  // MAXPACKET: no drops while no more than that waits
};

class CoDelControl {
 public:
  /// The next packet that is to be sent. `take` takes the first one out of the queue, `backlog`
  /// says what then waits.
  template <class Take, class Backlog>
  std::optional<Packet> dequeue(const CoDelParameters& with, Instant now, QueueEvents& events,
                                Take take, Backlog backlog) {
    const auto drop = [&events](const Packet& packet) {
      events.drops.push_back({packet, Fate::aqm_drop});
    };
    bool may_drop = false;
    const auto next = [&]() -> std::optional<Packet> {
      const std::optional<Waiting> first = take();
      may_drop = first && is_too_long(with, now, now - first->since, backlog());
      if (!first) {
        above_since_.reset();
        return std::nullopt;
      }
      return first->packet;
    };
    std::optional<Packet> packet = next();
    if (!packet) {
      is_dropping_ = false;
      return packet;
    }
    if (is_dropping_) {
      if (!may_drop) is_dropping_ = false;
      while (is_dropping_ && now >= next_drop_) {
        ++count_;
        if (with.ecn && try_to_mark(*packet, events)) {
          next_drop_ = control_law(with, next_drop_);
          return packet;
        }
        drop(*packet);
        packet = next();
        if (may_drop) {
          next_drop_ = control_law(with, next_drop_);
        } else {
          is_dropping_ = false;
        }
      }
    } else if (may_drop) {
      if (!with.ecn || !try_to_mark(*packet, events)) {
        drop(*packet);
        packet = next();
      }
      is_dropping_ = true;
      // After a short pause it begins with the rate that controlled the queue before.
      const std::uint32_t before = count_ - last_count_;
      count_ = before > 1 && now - next_drop_ < 16 * with.interval ? before : 1;
      next_drop_ = control_law(with, now);
      last_count_ = count_;
    }
    return packet;
  }

 private:
  [[nodiscard]] Instant control_law(const CoDelParameters& with, Instant from) const {
    const double interval = static_cast<double>(with.interval.count());
    return from + Duration{std::llround(interval / std::sqrt(static_cast<double>(count_)))};
  }
  /// Whether the sojourn time has been above the target for an interval.
  bool is_too_long(const CoDelParameters& with, Instant now, Duration sojourn, Bytes backlog) {
    if (sojourn < with.target || backlog <= with.packet) {
      above_since_.reset();
      return false;
    }
    if (!above_since_) {
      above_since_ = now;
      return false;
    }
    return now - *above_since_ >= with.interval;
  }

  std::optional<Instant> above_since_;
  bool is_dropping_ = false;
  Instant next_drop_{};
  std::uint32_t count_ = 0;  // of drops since dropping began
  std::uint32_t last_count_ = 0;
};

}  // namespace nagi::model
