// SPDX-License-Identifier: Apache-2.0
#include "model/delay.hpp"

#include <algorithm>

namespace nagi::model {

namespace {

constexpr int max_redraws = 100;  // after so many draws that make the delay negative, it is 0

}  // namespace

Duration Delay::next(std::uint64_t index, Instant sent) {
  const auto* constant = std::get_if<Duration>(&delay_);
  const Duration base = constant ? *constant : std::get<Trace<Duration>>(delay_).at(sent).value;
  if (std::holds_alternative<std::monostate>(jitter_.distribution)) return base;
  const bool is_repeated =
      last_jitter_ && jitter_.correlation > 0 && repeats_.happens(streams_.repeats.draw(index));
  Duration jitter = is_repeated ? *last_jitter_ : jitter_at(streams_.draws.draw(index));
  for (int i = 0; jitter_.redraw_negative && base + jitter < Duration::zero() && i < max_redraws;
       ++i) {
    jitter = jitter_at(streams_.redraws.draw(redraws_++));
  }
  last_jitter_ = jitter;
  return std::max(base + jitter, Duration::zero());
}

Duration Delay::min() const {
  const auto* constant = std::get_if<Duration>(&delay_);
  if (constant == nullptr) return Duration::zero();
  return std::visit(
      [constant]<class Distribution>(const Distribution& distribution) {
        if constexpr (std::is_same_v<Distribution, std::monostate>) {
          return *constant;
        } else {
          const Duration earliest = distribution.min();
          const bool is_unbounded = earliest == Duration::min();
          return is_unbounded || -earliest > *constant ? Duration::zero() : *constant + earliest;
        }
      },
      jitter_.distribution);
}

Duration Delay::jitter_at(std::uint64_t draw) const {
  return std::visit(
      [draw]<class Distribution>(const Distribution& distribution) {
        if constexpr (std::is_same_v<Distribution, std::monostate>) {
          return Duration::zero();
        } else {
          return distribution.at(draw);
        }
      },
      jitter_.distribution);
}

}  // namespace nagi::model
