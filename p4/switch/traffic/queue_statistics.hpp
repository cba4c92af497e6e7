// SPDX-License-Identifier: Apache-2.0
//
// Statistics of the packets and bytes that wait in queues: maximum, and mean over time. A packet
// that leaves the queue at the time of its arrival does not count.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.hpp"

namespace nagi::p4 {

struct Depth {
  std::uint64_t packets = 0;
  nagi::Bytes bytes;
};

class QueueStatistics {
 public:
  /// The statistics of an interval.
  struct Stretch {
    Depth maximum;
    double mean_packets = 0;
    double mean_bytes = 0;
  };

  /// Set the depth from `at` on. Times must not decrease.
  void set(Depth depth, Instant at) {
    account_until(at);
    now_ = depth;
  }
  [[nodiscard]] Depth now() const { return now_; }

  /// Return the statistics from time 0 to `at`.
  [[nodiscard]] Stretch until(Instant at) const {
    QueueStatistics then = *this;
    then.account_until(at);
    then.before_.add(then.recent_);
    return then.before_.over(at - Instant{});
  }
  /// Return the statistics from the last call of take(), or from time 0, to `at`.
  Stretch take(Instant at) {
    account_until(at);
    const Stretch stretch = recent_.over(at - taken_at_);
    before_.add(recent_);
    recent_ = {};
    taken_at_ = at;
    return stretch;
  }

 private:
  struct Sums {
    Depth maximum;
    unsigned __int128 packet_ns = 0;
    unsigned __int128 byte_ns = 0;

    void add(const Sums& other) {
      raise(other.maximum);
      packet_ns += other.packet_ns;
      byte_ns += other.byte_ns;
    }
    void raise(Depth depth) {
      maximum.packets = std::max(maximum.packets, depth.packets);
      maximum.bytes = std::max(maximum.bytes, depth.bytes);
    }
    [[nodiscard]] Stretch over(Duration length) const {
      if (length.count() <= 0) return {maximum, 0, 0};
      const auto ns = static_cast<double>(length.count());
      return {maximum, static_cast<double>(packet_ns) / ns, static_cast<double>(byte_ns) / ns};
    }
  };

  void account_until(Instant at) {
    if (at == known_until_) return;
    const auto passed = static_cast<std::uint64_t>((at - known_until_).count());
    recent_.raise(now_);
    recent_.packet_ns += static_cast<unsigned __int128>(now_.packets) * passed;
    recent_.byte_ns += static_cast<unsigned __int128>(now_.bytes.count) * passed;
    known_until_ = at;
  }

  Depth now_;
  Sums before_;  // until the last take()
  Sums recent_;  // from then on
  Instant known_until_{};
  Instant taken_at_{};
};

}  // namespace nagi::p4
