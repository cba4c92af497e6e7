// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "model/units.hpp"

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

/// Runs the updates that are due until `at`, every `period` from `next` on. While `is_at_rest`, an
/// update changes nothing: of these the last one alone is run, however long the silence was.
template <class IsAtRest, class Update>
void run_updates(Instant& next, Duration period, Instant at, IsAtRest is_at_rest, Update update) {
  for (; next <= at; next += period) {
    if (is_at_rest()) next += (at - next) / period * period;
    update();
  }
}

/// Passes over updates until `at` that came before anything was in the queue.
inline void skip_updates(Instant& next, Duration period, Instant at) {
  if (next <= at) next += ((at - next) / period + 1) * period;
}

}  // namespace nagi::model
