// SPDX-License-Identifier: Apache-2.0
#include "model/effects/in_flight.hpp"

#include <algorithm>

namespace nagi::model {

void InFlight::send(Arrival arrival, bool keep_order) {
  if (arrival.keeps_order) {
    if (keep_order) arrival.at = std::max(arrival.at, ordered_until_);
    hold_until(arrival.at);
  }
  const Sent sent{arrival, sent_++};
  if (in_order_.empty() || in_order_.back().arrival.at <= arrival.at) {
    in_order_.push_back(sent);
  } else {
    overtaking_.push_back(sent);
    std::ranges::push_heap(overtaking_, is_later);
  }
}

Instant InFlight::next() const {
  return overtaking_is_next() ? overtaking_.front().arrival.at : in_order_.front().arrival.at;
}

Arrival InFlight::take_next() {
  if (!overtaking_is_next()) {
    const Arrival next = in_order_.front().arrival;
    in_order_.pop_front();
    return next;
  }
  std::ranges::pop_heap(overtaking_, is_later);
  const Arrival next = overtaking_.back().arrival;
  overtaking_.pop_back();
  return next;
}

}  // namespace nagi::model
