// SPDX-License-Identifier: Apache-2.0
//
// One direction of a link, as a discrete-event model: loss at ingress (if so configured), drop-tail
// queue with marking, rate server, loss at egress (the default), propagation delay. Event times go
// in, event times come out; there is no clock and no I/O here.
//
// Events at the same instant happen in this order: ends of transmission, then arrivals.
#pragma once

#include <deque>
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
  /// `departures`. Appends deliveries in delivery order.
  void advance(Instant to, std::vector<Departure>& departures);

  /// Goes on by another configuration from `at`, which must not lie before now(). No packet is
  /// lost by it: what waits stays, even over a smaller limit; the packet in transmission goes on at
  /// the new rate; packets under way arrive as they would have; timed losses begin anew, packets
  /// are counted on.
  void change(const DirectionConfig& config, Instant at, std::vector<Departure>& departures);

  /// Appends the packets that are under way, each at the instant of its delivery, which nothing can
  /// change any more; the model is then through with them.
  void take_under_way(std::vector<Departure>& departures);

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
    if (in_service_) visit(in_service_->packet);
    for (const Packet& packet : waiting_) visit(packet);
  }
  [[nodiscard]] const DirectionCounters& counters() const { return counters_; }

 private:
  struct InService {
    Packet packet;
    Instant start;
    Instant end;
  };
  struct OnTheWay {
    Packet packet;
    Instant at;
  };

  [[nodiscard]] Bytes framed(Packet packet) const { return packet.size + config_.overhead; }
  [[nodiscard]] bool queue_has_room(Packet packet) const;
  [[nodiscard]] bool lost(Packet packet, Instant start, Instant end);
  void mark(Packet& packet, Instant at);
  void start_transmission(Packet packet, Instant at, bool at_once);
  void end_transmission(std::vector<Departure>& departures);
  void deliver(std::vector<Departure>& departures);
  void send_on_its_way(Packet packet, Instant sent);
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
  std::optional<InService> in_service_;
  std::deque<OnTheWay> on_the_way_;  // in the order of their delivery
  Instant taken_until_{};            // when the last that was taken out of it is delivered
  DirectionCounters counters_;
};

}  // namespace nagi::model
