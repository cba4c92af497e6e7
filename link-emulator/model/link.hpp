// SPDX-License-Identifier: Apache-2.0
//
// One direction of a link, as a discrete-event model: loss at ingress (if so configured), drop-tail
// queue with marking, rate server, loss at egress (the default), propagation delay. Event times go
// in, event times come out; there is no clock and no I/O here.
//
// Events at the same instant happen in this order: ends of transmission, outcomes, repetitions,
// then arrivals.
//
// With ARQ (selective repeat, at the sender of the link), a transmission that was lost is repeated:
// `feedback` after its end the packet goes on the air again, before all that waits. With keep_order
// the far end holds back what was sent later, until the packet is there or given up.
//
// On a radio the model draws no losses. Somebody else carries each transmission and tells its
// outcome, which the model needs when the packet is due or, with ARQ, after `feedback` if that is
// sooner. If it has not been told by then, the model stands still.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "model/delay.hpp"
#include "model/loss.hpp"
#include "model/mark.hpp"
#include "model/random.hpp"
#include "model/server.hpp"
#include "model/units.hpp"

namespace nagi::model {

/// How much may wait. The packet being transmitted is not waiting.
using QueueLimit = std::variant<Unlimited, Packets, Bytes>;

enum class LossPlace { ingress, egress };

/// Repetition of lost transmissions.
struct ArqConfig {
  unsigned retries = 0;  // at most, a packet
  Duration feedback{};   // from the end of a transmission until its loss is known to the sender
};

struct DirectionConfig {
  RateConfig rate;  // unlimited: transmission takes no time and nothing queues
  Bytes overhead;   // framing counted by the rate server on top of IP bytes, a packet
  QueueLimit queue;
  std::optional<MarkConfig> mark;
  DelayConfig delay{};
  JitterConfig jitter;
  bool keep_order = true;  // a packet with a shorter delay waits for those sent before it
  LossConfig loss;
  LossPlace loss_at = LossPlace::egress;
  std::optional<ArqConfig> arq;  // only with losses at egress
};

/// What the model knows of a packet: its size, the caller's name for it, whether it may be marked.
struct Packet {
  Bytes size;
  std::uint64_t tag = 0;
  bool ecn_capable = false;
  bool marked = false;  // set by the model
};

enum class Fate { delivered, queue_overflow, channel_loss };

/// A packet leaving the model: at its delivery, or where and when it was dropped.
struct Departure {
  Packet packet;
  Fate fate = Fate::delivered;
  Instant at;
};

/// A packet on the air: one of several attempts, with ARQ.
struct Sending {
  Packet packet;
  std::uint64_t number = 0;  // counts the transmissions
  unsigned attempt = 1;
  Instant start{};
  Instant end{};
  bool lost = false;        // once that is decided
  std::uint64_t order = 0;  // counts the packets, by their first attempts
};

/// Running totals of one direction.
struct DirectionCounters {
  std::uint64_t offered = 0;
  std::uint64_t delivered = 0;
  std::uint64_t queue_overflows = 0;
  std::uint64_t channel_losses = 0;
  std::uint64_t marked = 0;
  Bytes offered_bytes;
  Bytes delivered_bytes;
  std::uint64_t transmitted = 0;   // packets the rate server has sent, lost at egress or not
  Bytes transmitted_bytes;         // their bytes, overhead included
  Duration transmitting{};         // time the rate server was busy sending them
  std::uint64_t most_waiting = 0;  // packets
};

class Direction {
 public:
  Direction(const DirectionConfig& config, std::uint64_t seed, std::uint32_t link, Way way);

  /// A packet arrives. Brings the model to `at` first; `at` must not lie before now().
  void offer(Packet packet, Instant at, std::vector<Departure>& departures);

  /// Brings the model to `to`: everything due until then, `to` included, is appended to
  /// `departures`. Appends deliveries in delivery order. Stops where an outcome is missing: see
  /// awaits_outcome().
  void advance(Instant to, std::vector<Departure>& departures);

  /// Goes on by another configuration from `at`, which must not lie before now(). No packet is
  /// lost by it: what waits stays, even over a smaller limit; the packet in transmission goes on at
  /// the new rate; packets under way arrive as they would have; timed losses begin anew, packets
  /// are counted on.
  void change(const DirectionConfig& config, Instant at, std::vector<Departure>& departures);

  /// Appends the packets that are under way, each at the instant of its delivery, which nothing can
  /// change any more; the model is then through with them.
  void take_under_way(std::vector<Departure>& departures);

  /// Whether transmissions and their outcomes are told one by one: on a radio, and with ARQ.
  [[nodiscard]] bool is_watched() const { return is_radio() || config_.arq.has_value(); }
  [[nodiscard]] bool is_radio() const { return std::holds_alternative<RadioConfig>(config_.loss); }
  /// Radio: transmissions that have begun since the caller last emptied this.
  [[nodiscard]] std::vector<Sending>& begun() { return begun_; }
  /// Transmissions whose outcome has been decided since the caller last emptied this; only if
  /// is_watched().
  [[nodiscard]] std::vector<Sending>& decided() { return decided_; }
  /// Radio: the outcome of the first transmission that has begun and was not told of yet.
  void tell(bool lost) { outcomes_.push_back(lost); }
  /// Whether the model stands still for want of an outcome. Nothing may then be offered.
  [[nodiscard]] bool awaits_outcome() const {
    return outcomes_.empty() && !undecided_.empty() && decision(undecided_.front()) <= now_;
  }

  /// When something is next due; nothing if the model is empty.
  [[nodiscard]] std::optional<Instant> next_event() const;

  /// No packet is delivered before this instant; nothing if the model is empty. Where delays are
  /// constant, the next one is delivered then, if it is not lost. What else happens until then need
  /// not be asked for: it comes out the same, whenever the model is brought on.
  [[nodiscard]] std::optional<Instant> next_delivery() const;

  /// No packet that arrives is delivered sooner after that.
  [[nodiscard]] Duration least_delay() const { return delay_->least(); }

  /// The instant the model was last brought to.
  [[nodiscard]] Instant now() const { return now_; }
  /// Packets waiting, being transmitted or under way.
  [[nodiscard]] std::size_t held() const;
  /// Calls `visit` with each of them.
  template <class Visit>
  void for_each_held(Visit visit) const {
    for (const OnTheWay& going : on_the_way_) visit(going.packet);
    for (const auto& [order, landed] : landed_) {
      if (!landed.given_up) visit(landed.packet);
    }
    for (const Sending& sent : undecided_) visit(sent.packet);
    for (const Repetition& repetition : repetitions_) visit(repetition.sending.packet);
    for (const Sending& again : again_) visit(again.packet);
    if (in_service_) visit(in_service_->packet);
    for (const Packet& packet : waiting_) visit(packet);
  }
  [[nodiscard]] const DirectionCounters& counters() const { return counters_; }

 private:
  struct OnTheWay {
    Packet packet;
    Instant at;
  };
  struct Repetition {
    Sending sending;
    Instant at;
  };
  /// At the far end, held back for a packet sent earlier; or given up there.
  struct Landed {
    Packet packet;
    Instant at;
    bool given_up = false;
  };

  [[nodiscard]] Bytes framed(Packet packet) const { return packet.size + config_.overhead; }
  [[nodiscard]] bool queue_has_room(Packet packet) const;
  [[nodiscard]] bool lost(Packet packet, Instant start, Instant end);
  void mark(Packet& packet, Instant at);
  void advance_watched(Instant to, std::vector<Departure>& departures);
  void start_transmission(Packet packet, Instant at, bool at_once);
  void start_transmission(Sending sending, Instant at, bool at_once);
  void start_next(Instant at);
  void end_transmission(std::vector<Departure>& departures);
  void conclude(Sending sent, std::vector<Departure>& departures);
  void land(const Sending& sent, bool given_up);
  [[nodiscard]] Instant decision(const Sending& sent) const;
  void repeat(std::vector<Departure>& departures);
  void deliver(std::vector<Departure>& departures);
  void send_on_its_way(const Sending& sent);
  void send_on_its_way(OnTheWay going);
  void drop(Packet packet, Fate fate, Instant at, std::vector<Departure>& departures);
  void make_models(Instant from);

  std::uint64_t seed_;
  std::uint32_t link_;
  Way way_;
  DirectionConfig config_;
  RateServer server_;
  std::optional<QueueAverage> average_;
  std::optional<Delay> delay_;
  std::unique_ptr<LossModel> loss_;
  std::uint64_t loss_index_ = 0;
  Instant now_{};
  Instant idle_since_{};
  std::deque<Packet> waiting_;
  Bytes waiting_bytes_;
  std::optional<Sending> in_service_;
  std::vector<Sending> begun_;
  std::vector<Sending> decided_;
  std::deque<Sending> undecided_;       // radio: sent, in this order
  std::deque<bool> outcomes_;           // of the first of them, and of what is on the air
  std::deque<Repetition> repetitions_;  // ARQ: lost, until that is known
  std::deque<Sending> again_;           // then, until the server is free
  std::map<std::uint64_t, Landed> landed_;
  std::uint64_t next_landing_ = 0;
  Instant landed_until_{};
  std::uint64_t numbers_ = 0;  // transmissions, and packets that have been transmitted
  std::uint64_t orders_ = 0;
  std::deque<OnTheWay> on_the_way_;  // in the order of their delivery
  Instant taken_until_{};            // when the last that was taken out of it is delivered
  DirectionCounters counters_;
};

}  // namespace nagi::model
