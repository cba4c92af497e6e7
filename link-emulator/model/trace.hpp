// SPDX-License-Identifier: Apache-2.0
//
// A quantity that follows a trace: it is piecewise constant and repeats with a period that begins
// at the link's epoch.
#pragma once

#include <algorithm>
#include <vector>

#include "base/units.hpp"

namespace nagi::model {

template <class Value>
struct Step {
  Duration at{};  // from the beginning of the period
  Value value{};
};

/// Steps in the order of time; the first is at 0, and all lie before the end of the period.
template <class Value>
struct Trace {
  std::vector<Step<Value>> steps;
  Duration period{};

  /// A value and the instant at which it ends.
  struct Stretch {
    Value value;
    Instant end;
  };
  /// Return the value at `instant` and its end.
  [[nodiscard]] Stretch at(Instant instant) const {
    const Duration offset = instant.time_since_epoch() % period;
    const auto next =
        std::upper_bound(steps.begin(), steps.end(), offset,
                         [](Duration time, const Step<Value>& step) { return time < step.at; });
    const Duration end = next == steps.end() ? period : next->at;
    return {std::prev(next)->value, instant - offset + end};
  }
};

}  // namespace nagi::model
