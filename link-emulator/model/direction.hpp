// SPDX-License-Identifier: Apache-2.0
//
// One direction of a link, as a discrete-event model without clock and I/O. A packet passes these
// stages: loss at ingress (if configured), marking and queue discipline, rate server, loss at
// egress (the default), propagation delay with jitter, corruption, duplication and reordering.
//
// Events at the same instant are processed in this order: ends of transmissions, outcomes, feedback
// of ARQ, starts of transmissions, arrivals of packets.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/units.hpp"
#include "model/adaptation/rate_adaptation.hpp"
#include "model/arq.hpp"
#include "model/counters.hpp"
#include "model/delay.hpp"
#include "model/direction_model.hpp"
#include "model/effects/in_flight.hpp"
#include "model/loss/loss.hpp"
#include "model/marking/marking.hpp"
#include "model/packet.hpp"
#include "model/queue/discipline.hpp"
#include "model/radio_outcomes.hpp"
#include "model/random.hpp"
#include "model/server.hpp"

namespace nagi::model {

enum class LossPoint { ingress, egress };

struct DirectionConfig {
  RateConfig rate;  // if unlimited, transmission takes no time and no packet waits
  Bytes overhead;   // framing per packet, which the rate server adds to the IP packet
  QueueConfig queue;
  std::optional<MarkConfig> mark;  // only with drop-tail queues
  DelayConfig delay{};
  JitterConfig jitter;
  bool keep_order = true;  // a packet with a shorter delay waits for the packets sent before it
  EffectConfigs effects;
  LossConfig loss;
  LossPoint loss_at = LossPoint::egress;
  std::optional<ArqConfig> arq;                         // only with losses at egress
  std::optional<RateAdaptationConfig> rate_adaptation;  // only with ARQ, whose feedback it needs
};

/// The model of one direction.
class Direction final : public DirectionModel {
 public:
  /// Create the direction. `seed`, `link` (the id of the link) and `name` select its random
  /// numbers.
  Direction(const DirectionConfig& config, std::uint64_t seed, std::uint32_t link,
            DirectionName name);

  void offer(Packet packet, Instant at, std::vector<Departure>& departures) override;

  /// Advance as described in DirectionModel, but stop at the instant at which a needed outcome of a
  /// radio is missing; see awaits_outcome().
  void advance(Instant to, std::vector<Departure>& departures) override;

  /// Change the configuration at `at`, which must not lie before now().
  ///
  /// The change loses no packet. Waiting packets stay in the queue, even above a smaller limit; the
  /// new queue discipline starts in its initial state. The packet in transmission continues at the
  /// new rate. Packets that have been transmitted arrive as without the change. Loss models restart
  /// in their initial state. Counters and the numbers of packets continue.
  void change(const DirectionConfig& config, Instant at, std::vector<Departure>& departures);

  /// Remove the packets that have been transmitted and not delivered yet, and append them to
  /// `departures`, each with the instant at which it will be delivered. Later events cannot change
  /// that instant.
  void take_in_flight(std::vector<Departure>& departures);

  /// Return whether resolved() lists each transmission with its outcome. This is so with radios and
  /// with ARQ.
  [[nodiscard]] bool reports_transmissions() const { return is_radio() || config_.arq.has_value(); }
  [[nodiscard]] bool is_radio() const { return std::holds_alternative<RadioLoss>(config_.loss); }
  /// Return whether the result depends on the flow to which a packet belongs.
  [[nodiscard]] bool distinguishes_flows() const {
    return std::holds_alternative<FqCoDel>(config_.queue);
  }
  /// The radio transmissions that have started since the caller last emptied this list.
  [[nodiscard]] std::vector<Transmission>& started() { return radio_.started(); }
  /// The transmissions whose outcome was resolved since the caller last emptied this list. The list
  /// is filled only if reports_transmissions().
  [[nodiscard]] std::vector<Transmission>& resolved() { return resolved_; }
  /// Report the outcome of the first radio transmission that has started and has no outcome yet.
  /// `snr` is in 0.01 dB.
  void report(bool lost, std::int16_t snr = no_snr) { radio_.report(lost, snr); }
  /// Return whether the model waits for an outcome before it can advance. The caller must not offer
  /// packets in this state.
  [[nodiscard]] bool awaits_outcome() const {
    return radio_.has_ended() && !radio_.has_outcome() && needed_at(radio_.first_ended()) <= now_;
  }

  /// Return the instant of the next event, or nothing if the model holds no packet.
  [[nodiscard]] std::optional<Instant> next_event() const;

  [[nodiscard]] std::optional<Instant> next_delivery() const override;

  /// Return the least time from the end of a packet's transmission to its delivery.
  [[nodiscard]] Duration min_delay() const { return delay_->min(); }

  [[nodiscard]] Instant now() const override { return now_; }
  [[nodiscard]] std::size_t held() const override;
  void for_each_held(const std::function<void(const Packet&)>& visit) const override;
  [[nodiscard]] const DirectionCounters& counters() const override { return counters_; }

 private:
  [[nodiscard]] Stream stream(Purpose purpose) const { return {seed_, link_, name_, purpose}; }
  [[nodiscard]] Bytes framed(const Packet& packet) const { return packet.size + config_.overhead; }
  [[nodiscard]] Bytes framed(const Transmission& transmission) const {
    const Bytes overhead =
        adaptation_ ? adaptation_->mode(transmission.mode).overhead : config_.overhead;
    return transmission.packet.size + overhead;
  }
  [[nodiscard]] bool is_lost(const Transmission& transmission);
  [[nodiscard]] bool is_marked_on_arrival(const Packet& packet, Instant at);
  /// Return whether events may depend on outcomes or feedback, as with radios and ARQ.
  [[nodiscard]] bool has_feedback() const;
  [[nodiscard]] bool can_start() const;
  /// Return the instant from which on the model needs the outcome of a transmission.
  [[nodiscard]] Instant needed_at(const Transmission& transmission) const;
  void advance_by_events(Instant to, std::vector<Departure>& departures);
  void start(Transmission transmission, Instant at, bool back_to_back);
  void start_next(Instant at, bool back_to_back, std::vector<Departure>& departures);
  void end_transmission(std::vector<Departure>& departures);
  void resolve(const Transmission& transmission, std::vector<Departure>& departures);
  void pass_to_receiver(const Transmission& transmission, bool given_up);
  void schedule_delivery(const Packet& packet, std::uint64_t order, Instant at);
  void deliver_until(Instant to, std::vector<Departure>& departures);
  void deliver_next(std::vector<Departure>& departures);
  void process_queue_events(Instant at, std::vector<Departure>& departures);
  void drop(const Packet& packet, Fate fate, Instant at, std::vector<Departure>& departures);
  void make_models(Instant from);

  std::uint64_t seed_;
  std::uint32_t link_;
  DirectionName name_;
  DirectionConfig config_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<MarkingRule> marking_;
  RateServer server_;
  std::optional<Delay> delay_;
  std::unique_ptr<LossModel> loss_;
  std::vector<std::unique_ptr<Effect>> effects_;
  std::uint64_t loss_index_ = 0;
  Instant now_{};
  Instant idle_since_{};  // end of the last transmission
  std::optional<Transmission> in_service_;
  RadioOutcomes radio_;
  std::vector<Transmission> resolved_;
  Repetitions repetitions_;
  std::optional<RateAdaptation> adaptation_;
  Resequencer resequencer_;
  InFlight in_flight_;
  std::uint64_t transmissions_ = 0;  // number of transmissions that were started
  std::uint64_t orders_ = 0;         // number of packets that were sent at least once
  DirectionCounters counters_;
  QueueEvents queue_events_;  // a member only to reuse its memory
};

}  // namespace nagi::model
