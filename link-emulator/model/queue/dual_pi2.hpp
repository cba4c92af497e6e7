// SPDX-License-Identifier: Apache-2.0
//
// DualPI2 (RFC 9332, appendix A.2): a low-latency queue for packets with ECT(1) or CE, and a
// classic queue. A PI2 controller computes a base probability p every `update`. Classic packets are
// dropped or marked with probability p^2. Low-latency packets are marked with probability k p, or
// with a higher probability that depends on their sojourn time. As in Linux, weighted round robin
// prevents starvation of the classic queue.
//
// In this implementation, k p is at most 1. In the RFC's pseudocode, the count of the marks with
// probability k p grows without bound in overload, and then selects packets that should be dropped
// with probability p^2.
//
// With the style `linux` (net/sched/sch_dualpi2.c), the main differences are these. The controller
// drops and marks no packet while less than two full-size packets wait, so that slow links do not
// idle. It draws random numbers where the RFC counts. Low-latency packets are marked above a step
// where the RFC has a ramp.
#pragma once

#include <algorithm>

#include "model/described.hpp"
#include "model/queue/pi_controller.hpp"
#include "model/queue/queue.hpp"
#include "model/queue/style.hpp"

namespace nagi::model {

struct DualPi2 {
  QueueLimit limit = Packets{10000};  // of both queues together
  Duration target = std::chrono::milliseconds(15);
  Duration update = std::chrono::milliseconds(16);
  double alpha = 0.16;                         // Hz
  double beta = 3.2;                           // Hz
  double coupling = 2;                         // k
  std::optional<Duration> step = {};           // sojourn time above which Linux marks; default 1 ms
  std::optional<Duration> min_threshold = {};  // begin of the RFC's ramp; default 800 us
  std::optional<Duration> range = {};          // length of the ramp; default 400 us
  double classic_weight = 0.1;  // fraction of the rate for the classic queue if both have packets
  Bytes packet{1500};           // size of a full-size packet
  Style style = Style::as_linux;

  static constexpr std::string_view name = "dualpi2";
  static constexpr auto fields() {
    using Self = DualPi2;
    return std::tuple(optional("target_ns", &Self::target, bounds::aqm_target_ns),
                      optional("update_ns", &Self::update, bounds::aqm_update_ns),
                      optional("alpha_hz", &Self::alpha, bounds::aqm_gain_hz),
                      optional("beta_hz", &Self::beta, bounds::aqm_gain_hz),
                      optional("coupling", &Self::coupling, bounds::aqm_coupling),
                      optional("step_ns", &Self::step, bounds::aqm_target_ns),
                      optional("min_threshold_ns", &Self::min_threshold, bounds::aqm_target_ns),
                      optional("range_ns", &Self::range, bounds::aqm_target_ns),
                      optional("classic_weight", &Self::classic_weight, bounds::probability),
                      optional("full_packet_bytes", &Self::packet, bounds::packet_bytes),
                      style_field<Self>(), only_with(as_linux, "step_ns", &Self::step),
                      only_with(as_rfc, "min_threshold_ns", &Self::min_threshold),
                      only_with(as_rfc, "range_ns", &Self::range));
  }

  class Model;
};

class DualPi2::Model final : public Queue {
 public:
  Model(const DualPi2& config, const Stream& draws)
      : config_(config),
        step_(config.step.value_or(std::chrono::milliseconds(1))),
        min_threshold_(config.min_threshold.value_or(std::chrono::microseconds(800))),
        range_(config.range.value_or(std::chrono::microseconds(400))),
        draws_(draws),
        updates_(Instant{is_linux() ? config.update : Duration::zero()}, config.update) {
    reset_credit();
  }

  void enqueue(const Packet& packet, Instant at, std::optional<Bytes> in_transmission,
               QueueEvents& events) override {
    update_until(at);
    if (overflows(config_.limit, *this, packet, in_transmission)) {
      events.drops.push_back({packet, Fate::queue_overflow});
    } else {
      adopt({packet, at});
    }
  }

  std::optional<Packet> dequeue(Instant at, QueueEvents& events) override {
    update_until(at);
    while (packets() > 0) {
      const bool is_low_latency = schedules_low_latency();
      const Waiting next = (is_low_latency ? low_latency_ : classic_).pop();
      Packet packet = next.packet;
      const bool is_kept = is_low_latency ? passes_low_latency(packet, at - next.since, events)
                                          : passes_classic(packet, events);
      if (is_kept || !is_linux()) charge(packet.size, is_low_latency);
      if (is_kept) return packet;
      events.drops.push_back({packet, Fate::aqm_drop});
    }
    reset_credit();
    return std::nullopt;
  }

  void adopt(const Waiting& waiting) override {
    const Ecn ecn = waiting.packet.ecn;
    (ecn == Ecn::ect1 || ecn == Ecn::ce ? low_latency_ : classic_).push(waiting);
  }
  std::vector<Waiting> take_all() override {
    std::vector<Waiting> all(low_latency_.begin(), low_latency_.end());
    all.insert(all.end(), classic_.begin(), classic_.end());
    std::ranges::stable_sort(all, {}, &Waiting::since);
    low_latency_ = classic_ = {};
    return all;
  }
  [[nodiscard]] std::size_t packets() const override {
    return low_latency_.packets() + classic_.packets();
  }
  [[nodiscard]] Bytes bytes() const override { return low_latency_.bytes() + classic_.bytes(); }
  void for_each(const std::function<void(const Packet&)>& visit) const override {
    for (const Waiting& waiting : low_latency_) visit(waiting.packet);
    for (const Waiting& waiting : classic_) visit(waiting.packet);
  }

 private:
  /// An event that happens with a given likelihood, at intervals as equal as possible (`recur` in
  /// the RFC).
  class Recurrence {
   public:
    bool happens(double likelihood) {
      sum_ += likelihood;
      if (sum_ <= 1) return false;
      sum_ -= 1;
      return true;
    }

   private:
    double sum_ = 0;
  };

  [[nodiscard]] bool is_linux() const { return config_.style == Style::as_linux; }
  /// Return whether less than two full-size packets wait, so that Linux neither drops nor marks.
  [[nodiscard]] bool is_short() const { return bytes().count < 2 * config_.packet.count; }
  /// Return true with the given probability, by a random draw as in Linux.
  bool rolls(double probability) { return Chance(probability).happens(draws_.draw(draw_++)); }
  bool rolls_classic() { return rolls(base_) && rolls(base_); }
  [[nodiscard]] bool is_overloaded() const { return config_.coupling * base_ > 1; }
  /// Return the marking probability of low-latency packets, k p.
  [[nodiscard]] double coupled() const { return std::min(config_.coupling * base_, 1.0); }
  /// Return the probability p^2 with which classic packets are dropped or marked.
  [[nodiscard]] double classic() const { return base_ * base_; }

  /// Return the marking probability of the RFC's ramp, or 0 if no other low-latency packet waits.
  [[nodiscard]] double native(Duration sojourn) const {
    if (low_latency_.is_empty() || sojourn <= min_threshold_) return 0;
    const Duration above = sojourn - min_threshold_;
    if (above >= range_) return 1;
    return static_cast<double>(above.count()) / static_cast<double>(range_.count());
  }

  bool passes_low_latency(Packet& packet, Duration sojourn, QueueEvents& events) {
    if (is_linux()) {
      if (!is_short()) {
        if (is_overloaded() && rolls_classic()) return false;
        if (is_overloaded() || rolls(coupled())) try_to_mark(packet, events);
      }
      if (sojourn > step_) try_to_mark(packet, events);
      return true;
    }
    if (coupled() < 1) {
      const double likelihood = std::max(native(sojourn), coupled());
      if (recurs_low_latency_.happens(likelihood)) try_to_mark(packet, events);
      return true;
    }
    // In overload both queues drop.
    if (recurs_low_latency_.happens(classic())) return false;
    try_to_mark(packet, events);
    return true;
  }

  bool passes_classic(Packet& packet, QueueEvents& events) {
    if (is_linux()) {
      if (is_short() || !rolls_classic()) return true;
      return !is_overloaded() && try_to_mark(packet, events);
    }
    if (!recurs_classic_.happens(classic())) return true;
    const double max_marking = std::min(1 / (config_.coupling * config_.coupling), 1.0);
    return classic() < max_marking && try_to_mark(packet, events);
  }

  [[nodiscard]] bool schedules_low_latency() const {
    return !low_latency_.is_empty() && (classic_.is_empty() || credit_ <= 0);
  }
  /// Account for a sent packet: low-latency bytes add to the credit of the classic queue, and
  /// classic bytes reduce this credit.
  void charge(Bytes size, bool is_low_latency) {
    const bool both_wait = !(is_low_latency ? classic_ : low_latency_).is_empty();
    if (!both_wait) return;
    const double weight = is_low_latency ? config_.classic_weight : config_.classic_weight - 1;
    credit_ += weight * static_cast<double>(size.count);
  }
  void reset_credit() {
    credit_ = static_cast<double>(config_.packet.count) * (2 * config_.classic_weight - 1);
  }

  void update_until(Instant at) {
    updates_.run_until(
        at, [this] { return is_at_rest(); }, [this](Instant due) { update_probability(due); });
  }
  /// Return whether updates have no effect until a packet arrives.
  [[nodiscard]] bool is_at_rest() const {
    return packets() == 0 && delay_before_ == Duration::zero() &&
           (base_ == 0 || config_.alpha == 0);
  }
  void update_probability(Instant at) {
    const auto waited = [at](const Fifo& fifo) {
      return fifo.is_empty() ? Duration::zero() : at - fifo.front().since;
    };
    const Duration delay = std::max(waited(low_latency_), waited(classic_));
    base_ = std::clamp(base_ + pi_change(config_, delay, delay_before_), 0.0, 1.0);
    delay_before_ = delay;
  }

  DualPi2 config_;
  Duration step_;
  Duration min_threshold_;
  Duration range_;
  Stream draws_;
  std::uint64_t draw_ = 0;
  Fifo low_latency_;
  Fifo classic_;
  Recurrence recurs_low_latency_;
  Recurrence recurs_classic_;
  double base_ = 0;    // p
  double credit_ = 0;  // bytes
  Duration delay_before_{};
  Updates updates_;
};

}  // namespace nagi::model
