// SPDX-License-Identifier: Apache-2.0
//
// All effects on packets under way, and the packets that are under way, in the order in which they
// will arrive.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "model/effects/corruption.hpp"
#include "model/effects/duplication.hpp"
#include "model/effects/effect.hpp"
#include "model/effects/reordering.hpp"

namespace nagi::model {

/// An effect of its own file is added here.
using EffectConfigs =
    std::tuple<std::optional<Corruption>, std::optional<Duplication>, std::optional<Reordering>>;

class UnderWay {
 public:
  /// Packets that arrive at the same instant do so in the order in which they were sent. With
  /// `keep_order` a packet waits for those sent before it, unless it is held back on purpose.
  void send(Arrival arrival, bool keep_order);
  /// What is sent from now on and keeps its order arrives at `at` or later.
  void hold_until(Instant at) { ordered_until_ = std::max(ordered_until_, at); }

  [[nodiscard]] bool is_empty() const { return in_order_.empty() && overtaking_.empty(); }
  [[nodiscard]] std::size_t size() const { return in_order_.size() + overtaking_.size(); }
  /// When the next arrives. There must be one.
  [[nodiscard]] Instant next() const;
  Arrival take_next();
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Sent& sent : in_order_) visit(sent.arrival.packet);
    for (const Sent& sent : overtaking_) visit(sent.arrival.packet);
  }

 private:
  struct Sent {
    Arrival arrival;
    std::uint64_t number = 0;
  };
  static bool is_later(const Sent& one, const Sent& other) {
    return std::tie(one.arrival.at, one.number) > std::tie(other.arrival.at, other.number);
  }
  [[nodiscard]] bool overtaking_is_next() const {
    return in_order_.empty() ||
           (!overtaking_.empty() && is_later(in_order_.front(), overtaking_.front()));
  }

  std::deque<Sent> in_order_;     // of arrival
  std::vector<Sent> overtaking_;  // a heap of those that arrive before the last of in_order_
  std::uint64_t sent_ = 0;
  Instant ordered_until_{};
};

}  // namespace nagi::model
