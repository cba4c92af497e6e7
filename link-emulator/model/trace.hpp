// SPDX-License-Identifier: Apache-2.0
//
// A quantity that follows a trace: piecewise constant, repeating with a period, counted from the
// link's epoch.
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

/// The first step is at 0, the others follow in order, all before the end of the period.
template <class Value>
struct Trace {
  std::vector<Step<Value>> steps;
  Duration period{};

  /// The step in effect at `instant`, and when it ends.
  struct Stretch {
    Value value;
    Instant end;
  };
  [[nodiscard]] Stretch at(Instant instant) const {
    const Duration offset = instant.time_since_epoch() % period;
    const auto next =
        std::upper_bound(steps.begin(), steps.end(), offset,
                         [](Duration wanted, const Step<Value>& step) { return wanted < step.at; });
    const Duration end = next == steps.end() ? period : next->at;
    return {std::prev(next)->value, instant - offset + end};
  }
};

}  // namespace nagi::model
