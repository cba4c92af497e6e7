// SPDX-License-Identifier: Apache-2.0
//
// PIE (RFC 8033): arriving packets are dropped or marked with a probability. A proportional
// integral controller updates this probability every `update`, from the queueing delay, which is
// measured by timestamps. The model has the RFC's optional elements ECN (section 5.1),
// derandomization (5.4) and the bound on increments (5.5).
//
// With the style `linux` (net/sched/sch_pie.c), updates begin after half a second. While packets
// wait longer than 250 ms, each update adds 2 %. Each departure reduces the burst allowance by the
// time since the previous departure.
#pragma once

#include <algorithm>
#include <optional>

#include "model/described.hpp"
#include "model/queue/pi_controller.hpp"
#include "model/queue/queue.hpp"
#include "model/queue/style.hpp"

namespace nagi::model {

struct Pie {
  QueueLimit limit = Packets{1000};
  Duration target = std::chrono::milliseconds(15);
  Duration update = std::chrono::milliseconds(15);
  Duration max_burst = std::chrono::milliseconds(150);
  double alpha = 0.125;  // Hz
  double beta = 1.25;    // Hz
  bool ecn = false;
  Bytes packet{1500};  // size of a full-size packet
  Style style = Style::as_linux;

  static constexpr std::string_view name = "pie";
  static constexpr auto fields() {
    return std::tuple(
        optional("target_ns", &Pie::target, bounds::aqm_target_ns),
        optional("update_ns", &Pie::update, bounds::aqm_update_ns),
        optional("max_burst_ns", &Pie::max_burst, bounds::aqm_interval_ns),
        optional("alpha_hz", &Pie::alpha, bounds::aqm_gain_hz),
        optional("beta_hz", &Pie::beta, bounds::aqm_gain_hz), FlagField<Pie>{"ecn", &Pie::ecn},
        optional("full_packet_bytes", &Pie::packet, bounds::packet_bytes), style_field<Pie>());
  }

  class Model;
};

class Pie::Model final : public SingleQueue {
 public:
  Model(const Pie& config, const Stream& draws)
      : config_(config),
        draws_(draws),
        burst_allowance_(config.max_burst),
        updates_(Instant{is_linux() ? std::chrono::milliseconds(500) : Duration::zero()},
                 config.update) {}

  void enqueue(const Packet& packet, Instant at, std::optional<Bytes> in_transmission,
               QueueEvents& events) override {
    update_until(at);
    Packet waiting = packet;
    if (overflows(config_.limit, *this, packet, in_transmission)) {
      accumulated_ = 0;
      events.drops.push_back({packet, Fate::queue_overflow});
    } else if (selects_arrival() &&
               !(config_.ecn && probability_ <= max_marking && try_to_mark(waiting, events))) {
      accumulated_ = 0;
      events.drops.push_back({packet, Fate::aqm_drop});
    } else {
      fifo().push({waiting, at});
    }
  }

  std::optional<Packet> dequeue(Instant at, QueueEvents& /*events*/) override {
    update_until(at);
    if (fifo().is_empty()) return std::nullopt;
    const Waiting next = fifo().pop();
    delay_ = fifo().is_empty() ? Duration::zero() : at - next.since;
    if (is_linux()) {
      if (last_departure_) spend_burst_allowance(at - *last_departure_);
      last_departure_ = at;
    }
    return next.packet;
  }

 private:
  [[nodiscard]] bool is_linux() const { return config_.style == Style::as_linux; }

  static constexpr double max_marking =
      0.1;  // above this probability ECT packets are dropped as well

  /// Return whether the controller selects an arriving packet to be dropped or marked.
  bool selects_arrival() {
    constexpr double low = 0.2;
    constexpr double min_accumulated = 0.85;
    constexpr double max_accumulated = 8.5;
    if (burst_allowance_ > Duration::zero()) return false;
    const Duration delay = is_linux() ? delay_ : delay_before_;
    if (delay < config_.target / 2 && probability_ < low) return false;
    const std::uint64_t waiting = fifo().bytes().count;
    const std::uint64_t two_packets = 2 * config_.packet.count;
    if (is_linux() ? waiting < two_packets : waiting <= two_packets) return false;
    accumulated_ = probability_ == 0 ? 0 : accumulated_ + probability_;
    if (accumulated_ < min_accumulated) return false;
    if (accumulated_ >= max_accumulated) return true;
    if (!Chance(std::min(probability_, 1.0)).happens(draws_.draw(draw_++))) return false;
    accumulated_ = 0;
    return true;
  }

  void update_until(Instant at) {
    updates_.run_until(
        at, [this] { return is_at_rest(); }, [this](Instant /*at*/) { update_probability(); });
  }
  /// Return whether updates have no effect until a packet arrives.
  [[nodiscard]] bool is_at_rest() const {
    return packets() == 0 && delay_ == Duration::zero() && delay_before_ == Duration::zero() &&
           probability_ == 0 && accumulated_ == 0 && burst_allowance_ == config_.max_burst;
  }

  void update_probability() {
    constexpr double max_increment = 0.02;
    constexpr double linux_overflow = 256;
    constexpr Duration linux_long_delay = std::chrono::milliseconds(250);
    constexpr double bounded_from = 0.1;
    constexpr double decay = 1 - 1.0 / 64;
    double change = pi_change(config_, delay_, delay_before_) * scale();
    if (probability_ >= bounded_from) change = std::min(change, max_increment);
    if (is_linux() && delay_ > linux_long_delay) change += max_increment;
    probability_ += change;
    const bool is_idle = delay_ == Duration::zero() && delay_before_ == Duration::zero();
    if (is_idle && !(is_linux() && packets() > 0)) probability_ *= decay;
    probability_ = std::max(probability_, 0.0);
    // Linux stores 56 fractional and 8 integer bits, and resets the probability to 1 when these
    // overflow.
    if (probability_ >= (is_linux() ? linux_overflow : 1)) probability_ = 1;
    const Duration half = config_.target / 2;
    if (probability_ == 0 && delay_ < half && delay_before_ < half) {
      burst_allowance_ = config_.max_burst;
      accumulated_ = 0;
      last_departure_.reset();
    } else if (!is_linux()) {
      spend_burst_allowance(config_.update);
    }
    delay_before_ = delay_;
  }
  void spend_burst_allowance(Duration time) {
    burst_allowance_ = std::max(burst_allowance_ - time, Duration::zero());
  }

  /// Return the factor that makes the steps of low probabilities small (section 4.2).
  [[nodiscard]] double scale() const {
    if (probability_ < 1e-6) return 1.0 / 2048;
    if (probability_ < 1e-5) return 1.0 / 512;
    if (probability_ < 1e-4) return 1.0 / 128;
    if (probability_ < 1e-3) return 1.0 / 32;
    if (probability_ < 1e-2) return 1.0 / 8;
    if (probability_ < 1e-1) return 1.0 / 2;
    return 1;
  }

  Pie config_;
  Stream draws_;
  std::uint64_t draw_ = 0;
  double probability_ = 0;
  double accumulated_ = 0;
  Duration burst_allowance_;
  Duration delay_{};         // queueing delay of the last departure
  Duration delay_before_{};  // queueing delay at the last update
  Updates updates_;
  std::optional<Instant> last_departure_;  // time of the last departure, for Linux's allowance
};

}  // namespace nagi::model
