// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "base/units.hpp"

namespace nagi::model {

/// By how much a proportional integral controller changes a probability (RFC 8033 section 4.2):
/// `config` has a target and the gains alpha and beta in Hz; `before` is the delay as of the last
/// update.
template <class Config>
double pi_change(const Config& config, Duration delay, Duration before) {
  const auto seconds = [](Duration duration) {
    return std::chrono::duration<double>(duration).count();
  };
  return config.alpha * seconds(delay - config.target) + config.beta * seconds(delay - before);
}

/// The updates of a controller, every `period` from `first` on.
class Updates {
 public:
  Updates(Instant first, Duration period) : next_(first), period_(period) {}

  /// Runs the updates that are due until `at`: update(instant). While is_at_rest(), an update
  /// changes nothing: of these the last one alone is run, however long the silence was. Updates
  /// before the first call are passed over: the queue was empty, or belonged to another discipline.
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
