/* SPDX-License-Identifier: Apache-2.0 */
//
// Two stations on one frequency. A station cannot receive while it transmits. If bursts of both
// directions overlap, both bursts are therefore lost.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <mutex>

namespace gr::nagi {

class HalfDuplex {
 public:
  /// Record that a burst of direction 0 or 1 is on the air from `begin_ns` to `end_ns` in event
  /// time.
  void transmit(std::size_t direction, std::int64_t begin_ns, std::int64_t end_ns) {
    const std::lock_guard lock(mutex_);
    auto& bursts = bursts_.at(direction);
    bursts.push_back({begin_ns, end_ns});
    while (bursts.front().second < begin_ns - history_ns) bursts.pop_front();
  }
  /// Return whether the other direction is on the air between `begin_ns` and `end_ns`.
  [[nodiscard]] bool overlaps(std::size_t direction, std::int64_t begin_ns,
                              std::int64_t end_ns) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [begin, end] : bursts_.at(1 - direction)) {
      if (begin < end_ns && end > begin_ns) return true;
    }
    return false;
  }

 private:
  static constexpr std::int64_t history_ns = 5'000'000'000;

  mutable std::mutex mutex_;
  std::array<std::deque<std::pair<std::int64_t, std::int64_t>>, 2> bursts_;
};

}  // namespace gr::nagi
