// SPDX-License-Identifier: Apache-2.0
//
// The offset of a capture's clock from a common clock, as a function of the time by the capture's
// clock. The offset is positive if the capture's clock is ahead. It is interpolated linearly
// between knots, and constant before the first and after the last knot. Without knots, the
// capture's clock is the common clock.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace nagi::captures {

class ClockCurve {
 public:
  /// Time by the capture's clock, and its offset at this time, both in ns.
  using Knot = std::pair<std::int64_t, std::int64_t>;

  ClockCurve() = default;
  /// Make a curve of knots with different times, in ascending order.
  explicit ClockCurve(std::vector<Knot> knots) : knots_(std::move(knots)) {}

  /// Convert a time of the capture to the common clock.
  [[nodiscard]] std::int64_t common(std::int64_t time_ns) const {
    return knots_.empty() ? time_ns : time_ns - ahead(time_ns);
  }

 private:
  [[nodiscard]] std::int64_t ahead(std::int64_t time_ns) const {
    const auto after =
        std::upper_bound(knots_.begin(), knots_.end(), time_ns,
                         [](std::int64_t time, const Knot& knot) { return time < knot.first; });
    if (after == knots_.begin()) return after->second;
    const auto before = after - 1;
    if (after == knots_.end()) return before->second;
    const double share = static_cast<double>(time_ns - before->first) /
                         static_cast<double>(after->first - before->first);
    return before->second +
           std::llround(share * static_cast<double>(after->second - before->second));
  }

  std::vector<Knot> knots_;
};

}  // namespace nagi::captures
