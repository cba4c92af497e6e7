// SPDX-License-Identifier: Apache-2.0
//
// One direction of a link, as a discrete-event model: loss at ingress (if so configured), marking
// and queue discipline, rate server, loss at egress (the default), propagation delay with what else
// happens on the way. Event times go in, event times come out; there is no clock and no I/O here.
//
// Events at the same instant happen in this order: ends of transmission, outcomes, feedback of ARQ,
// starts of transmission, then arrivals.
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
#include "model/effects/under_way.hpp"
#include "model/loss/loss.hpp"
#include "model/marking/marking.hpp"
#include "model/packet.hpp"
#include "model/queue/discipline.hpp"
#include "model/radio_outcomes.hpp"
#include "model/random.hpp"
#include "model/server.hpp"

namespace nagi::model {

enum class LossPlace { ingress, egress };

struct DirectionConfig {
  RateConfig rate;  // unlimited: transmission takes no time and nothing queues
  Bytes overhead;   // framing counted by the rate server on top of IP bytes, a packet
  QueueConfig queue;
  std::optional<MarkConfig> mark;  // only with drop-tail queues
  DelayConfig delay{};
  JitterConfig jitter;
  bool keep_order = true;  // a packet with a shorter delay waits for those sent before it
  EffectConfigs effects;
  LossConfig loss;
  LossPlace loss_at = LossPlace::egress;
  std::optional<ArqConfig> arq;                         // only with losses at egress
  std::optional<RateAdaptationConfig> rate_adaptation;  // only with ARQ, whose feedback it needs
};

class Direction final : public DirectionModel {
 public:
  Direction(const DirectionConfig& config, std::uint64_t seed, std::uint32_t link,
            DirectionName name);

  void offer(Packet packet, Instant at, std::vector<Departure>& departures) override;

  /// Stops where an outcome is missing: see awaits_outcome().
  void advance(Instant to, std::vector<Departure>& departures) override;

  /// Goes on by another configuration from `at`, which must not lie before now(). No packet is
  /// lost by it: what waits stays, even over a smaller limit; the packet in transmission goes on at
  /// the new rate; packets under way arrive as they would have; timed losses begin anew, packets
  /// are counted on. A queue discipline that is configured anew begins anew with what waits.
  void change(const DirectionConfig& config, Instant at, std::vector<Departure>& departures);

  /// Appends the packets that are under way, each at the instant of its delivery, which nothing can
  /// change any more; the model is then through with them.
  void take_under_way(std::vector<Departure>& departures);

  /// Whether transmissions and their outcomes are reported one by one: of a radio, and with ARQ.
  [[nodiscard]] bool reports_transmissions() const { return is_radio() || config_.arq.has_value(); }
  [[nodiscard]] bool is_radio() const { return std::holds_alternative<RadioLoss>(config_.loss); }
  /// Whether it matters to which flow a packet belongs.
  [[nodiscard]] bool tells_flows_apart() const {
    return std::holds_alternative<FqCoDel>(config_.queue);
  }
  /// Radio: transmissions that have started since the caller last emptied this.
  [[nodiscard]] std::vector<Transmission>& started() { return radio_.started(); }
  /// Transmissions whose outcome has been resolved since the caller last emptied this; only if
  /// reports_transmissions().
  [[nodiscard]] std::vector<Transmission>& resolved() { return resolved_; }
  /// Radio: the outcome of the first transmission that has started and has none yet.
  void report(bool lost, std::int16_t snr = no_snr) { radio_.report(lost, snr); }
  /// Whether the model stands still for want of an outcome. Nothing may then be offered.
  [[nodiscard]] bool awaits_outcome() const {
    return radio_.has_ended() && !radio_.knows_first() && needed_at(radio_.first_ended()) <= now_;
  }

  /// When something is next due; nothing if the model is empty.
  [[nodiscard]] std::optional<Instant> next_event() const;

  [[nodiscard]] std::optional<Instant> next_delivery() const override;

  /// No packet that arrives is delivered sooner after that.
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
  [[nodiscard]] bool has_stages() const;
  [[nodiscard]] bool can_start() const;
  /// When the outcome of a transmission is needed at the latest.
  [[nodiscard]] Instant needed_at(const Transmission& transmission) const;
  void advance_by_stages(Instant to, std::vector<Departure>& departures);
  void start(Transmission transmission, Instant at, bool at_once);
  void start_next(Instant at, bool at_once, std::vector<Departure>& departures);
  void end_transmission(std::vector<Departure>& departures);
  void conclude(const Transmission& transmission, std::vector<Departure>& departures);
  void land(const Transmission& transmission, bool given_up);
  void send_on(const Packet& packet, std::uint64_t order, Instant at);
  void deliver_until(Instant to, std::vector<Departure>& departures);
  void deliver_next(std::vector<Departure>& departures);
  void settle_queue_events(Instant at, std::vector<Departure>& departures);
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
  Instant idle_since_{};  // of the rate server, when it is idle
  std::optional<Transmission> in_service_;
  RadioOutcomes radio_;
  std::vector<Transmission> resolved_;
  Repetitions repetitions_;
  std::optional<RateAdaptation> adaptation_;
  Resequencer resequencer_;
  UnderWay under_way_;
  std::uint64_t transmissions_ = 0;
  std::uint64_t orders_ = 0;
  DirectionCounters counters_;
  QueueEvents queue_events_;  // kept for its memory
};

}  // namespace nagi::model
