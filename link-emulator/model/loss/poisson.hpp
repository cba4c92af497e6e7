// SPDX-License-Identifier: Apache-2.0
//
// Losses by a Poisson process in time: a packet is lost if an event occurs during its transmission.
// With H bytes of overhead, events occur at the rate -ln(1 - E) x bit rate / 8 (L + H), so that a
// packet of L bytes is lost with probability E.
#pragma once

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "model/described.hpp"
#include "model/loss/loss_model.hpp"

namespace nagi::model {

struct PoissonLoss {
  double packet_loss_rate = 0;  // E, in [0, 1)
  Bytes packet;                 // L

  static constexpr std::string_view name = "poisson";
  static constexpr bool needs_constant_rate = true;
  static constexpr auto fields() {
    return std::tuple(
        required("packet_loss_rate", &PoissonLoss::packet_loss_rate, bounds::packet_loss_rate),
        required("packet_bytes", &PoissonLoss::packet, bounds::packet_bytes));
  }

  /// Return the mean time between events in picoseconds, or nothing if there are no events.
  [[nodiscard]] std::optional<std::uint64_t> mean_interval(Bitrate rate, Bytes overhead) const {
    if (packet_loss_rate == 0) return std::nullopt;
    const double packet_seconds = 8.0 * static_cast<double>((packet + overhead).count) /
                                  static_cast<double>(rate.bits_per_second);
    const double picoseconds = std::round(packet_seconds / -std::log1p(-packet_loss_rate) * 1e12);
    if (picoseconds >= 9.2e18) return std::nullopt;  // less than one event in a hundred days
    constexpr double one_nanosecond = 1e3;           // the resolution of time
    return static_cast<std::uint64_t>(std::max(picoseconds, one_nanosecond));
  }

  class Model;
};

class PoissonLoss::Model final : public LossModel {
 public:
  Model(const PoissonLoss& config, const LossContext& context)
      : mean_interval_(config.mean_interval(rate_of(context), context.overhead)),
        draws_(context.draws),
        event_(context.from) {
    if (mean_interval_) draw_next_event();
  }

  bool loses(std::uint64_t /*index*/, const Transmission& transmission) override {
    if (!mean_interval_) return false;
    while (event_ < transmission.start) draw_next_event();
    return event_ < transmission.end;
  }

 private:
  static Bitrate rate_of(const LossContext& context) {
    if (!context.rate)
      throw std::invalid_argument("Poisson loss needs a link with a constant rate");
    return *context.rate;
  }
  void draw_next_event() { event_ += exponential(draws_.draw(draw_++), *mean_interval_); }

  std::optional<std::uint64_t> mean_interval_;
  Stream draws_;
  std::uint64_t draw_ = 0;
  Instant event_;
};

}  // namespace nagi::model
