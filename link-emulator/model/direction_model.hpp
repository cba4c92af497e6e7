// SPDX-License-Identifier: Apache-2.0
//
// The interface of a model of one direction of a link: Direction (direction.hpp), or a model that
// runs elsewhere, such as in an FPGA. All times are passed in and returned; the model reads no
// clock.
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

/// A model of one direction of a link.
class DirectionModel : public Interface {
 public:
  /// Add a packet that arrives at `at`, after advancing the model to that instant. `at` must not
  /// lie before now().
  virtual void offer(Packet packet, Instant at, std::vector<Departure>& departures) = 0;
  /// Process all events up to and including `to`. Append the packets that leave to `departures`,
  /// deliveries in the order of delivery.
  virtual void advance(Instant to, std::vector<Departure>& departures) = 0;

  /// Append departures that the other functions could not return yet. Only models that run
  /// elsewhere have these.
  virtual void take_departures(std::vector<Departure>& /*departures*/) {}

  /// Return an instant before which no packet is delivered, or nothing if the model holds no
  /// packet. If delays are constant, the next packet is delivered at this instant unless it is
  /// lost. The caller need not advance the model before this instant: the results do not depend on
  /// the calls.
  [[nodiscard]] virtual std::optional<Instant> next_delivery() const = 0;

  /// Return the instant to which the model has advanced.
  [[nodiscard]] virtual Instant now() const = 0;
  /// Return the number of packets that wait, are being transmitted, or propagate.
  [[nodiscard]] virtual std::size_t held() const = 0;
  /// Call `visit` for each packet that held() counts.
  virtual void for_each_held(const std::function<void(const Packet&)>& visit) const = 0;
  [[nodiscard]] virtual const DirectionCounters& counters() const = 0;
};

}  // namespace nagi::model
