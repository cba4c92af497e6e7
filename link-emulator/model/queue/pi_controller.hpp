// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "base/units.hpp"

namespace nagi::model {

/// Return the change of the probability of a proportional integral controller (RFC 8033 section
/// 4.2). `config` has a target and the gains alpha and beta in Hz. `delay` is the current queueing
/// delay, `previous_delay` that at the previous update.
template <class Config>
double pi_change(const Config& config, Duration delay, Duration previous_delay) {
  const auto seconds = [](Duration duration) {
    return std::chrono::duration<double>(duration).count();
  };
  return config.alpha * seconds(delay - config.target) +
         config.beta * seconds(delay - previous_delay);
}

/// The periodic updates of a controller: the first at `first`, then one every `period`.
class Updates {
 public:
  Updates(Instant first, Duration period) : next_(first), period_(period) {}

  /// Call `update(instant)` for each update that is due until `at`. While `is_at_rest()` is true,
  /// updates have no effect, so only the last due update is run. Updates before the first call are
  /// skipped, because the queue was empty or belonged to another discipline.
  template <class IsAtRest, class Update>
  void run_until(Instant at, IsAtRest is_at_rest, Update update) {
    if (!has_run_ && next_ <= at) next_ += ((at - next_) / period_ + 1) * period_;
    has_run_ = true;
    for (; next_ <= at; next_ += period_) {
      if (is_at_rest()) next_ += (at - next_) / period_ * period_;
      update(next_);
    }
  }

 private:
  Instant next_;
  Duration period_;
  bool has_run_ = false;
};

}  // namespace nagi::model
