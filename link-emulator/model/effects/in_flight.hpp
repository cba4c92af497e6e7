// SPDX-License-Identifier: Apache-2.0
//
// The packets that propagate, in the order of their arrival, and the list of all effects on
// packets.
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

/// All effects. Add a new effect here.
using EffectConfigs =
    std::tuple<std::optional<Corruption>, std::optional<Duplication>, std::optional<Reordering>>;

/// Packets that have been transmitted and will arrive.
class InFlight {
 public:
  /// Add a packet. Packets that arrive at the same instant arrive in the order in which they were
  /// sent. With `keep_order` a packet arrives no earlier than the packets sent before it, unless an
  /// effect holds it back.
  void send(Arrival arrival, bool keep_order);
  /// Make packets that are sent from now on arrive at `at` or later, except those that do not keep
  /// the order.
  void hold_until(Instant at) { ordered_until_ = std::max(ordered_until_, at); }

  [[nodiscard]] bool is_empty() const { return in_order_.empty() && overtaking_.empty(); }
  [[nodiscard]] std::size_t size() const { return in_order_.size() + overtaking_.size(); }
  /// Return the instant of the next arrival. There must be one.
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

  std::deque<Sent> in_order_;  // in the order of arrival
  std::vector<Sent>
      overtaking_;  // heap of the packets that arrive before the last one of in_order_
  std::uint64_t sent_ = 0;
  Instant ordered_until_{};
};

}  // namespace nagi::model
