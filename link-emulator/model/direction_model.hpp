// SPDX-License-Identifier: Apache-2.0
//
// What one direction of a link does to packets: Direction (direction.hpp), or something that does
// the same elsewhere. Event times go in, event times come out.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "base/interface.hpp"
#include "base/units.hpp"
#include "model/counters.hpp"
#include "model/packet.hpp"

namespace nagi::model {

class DirectionModel : public Interface {
 public:
  /// A packet arrives. Brings the model to `at` first; `at` must not lie before now().
  virtual void offer(Packet packet, Instant at, std::vector<Departure>& departures) = 0;
  /// Brings the model to `to`: everything due until then, `to` included, is appended to
  /// `departures`. Appends deliveries in delivery order.
  virtual void advance(Instant to, std::vector<Departure>& departures) = 0;

  /// Appends what has left meanwhile, if it was not known at once.
  virtual void take_departures(std::vector<Departure>& /*departures*/) {}

  /// No packet is delivered before this instant; nothing if the model is empty. Where delays are
  /// constant, the next one is delivered then, if it is not lost. What else happens until then need
  /// not be asked for: it comes out the same, whenever the model is brought on.
  [[nodiscard]] virtual std::optional<Instant> next_delivery() const = 0;

  /// The instant the model was last brought to.
  [[nodiscard]] virtual Instant now() const = 0;
  /// Packets waiting, being transmitted or under way.
  [[nodiscard]] virtual std::size_t held() const = 0;
  /// Calls `visit` with each of them.
  virtual void for_each_held(const std::function<void(const Packet&)>& visit) const = 0;
  [[nodiscard]] virtual const DirectionCounters& counters() const = 0;
};

}  // namespace nagi::model
