// SPDX-License-Identifier: Apache-2.0
//
// A medium that stations share by the distributed coordination function (DCF) of IEEE 802.11-2020,
// clause 10, as a discrete-event model without clock and I/O: carrier sense, NAV, backoff, RTS/CTS,
// ACKs, retry limits, broadcasts, and an interface queue a station.
//
// Signals take no time to propagate: what a slot has for it (aAirPropagationTime) is more than the
// ranges here need. Two stations whose backoffs end at the same instant collide.
//
// At one instant: moves, ends of frames, timeouts, arrivals, then begins of frames, which see
// neither each other nor themselves.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "model/loss/loss.hpp"
#include "model/medium/air_frame.hpp"
#include "model/medium/channel_access.hpp"
#include "model/medium/phy.hpp"
#include "model/medium/reach.hpp"
#include "model/queue/discipline.hpp"
#include "model/random.hpp"

namespace nagi::model {

struct Move {
  Duration at{};
  Position to;
};

struct StationConfig {
  Position position;
  std::vector<Move> trace;
};

/// After what EIFS follows: frames that began to be decoded and were not received correctly, as
/// the standard has it, or also signals that were only sensed, as ns-2 has it.
enum class EifsAfter : std::uint8_t { frames, signals };

struct MediumConfig {
  PhyConfig phy;
  std::optional<Bytes> rts_threshold;  // longer MPDUs are preceded by RTS and CTS
  unsigned short_retry_limit = 7;
  unsigned long_retry_limit = 4;
  std::uint32_t cw_min = 31;
  std::uint32_t cw_max = 1023;
  QueueConfig queue = DropTail{Packets{50}};
  LossConfig loss;  // of each frame at the station it is for
  bool resets_nav = true;
  EifsAfter eifs_after = EifsAfter::frames;
  ReachConfig reach;
  std::vector<StationConfig> stations;
};

/// Running totals of a station.
struct StationCounters {
  std::uint64_t offered = 0;
  std::uint64_t delivered = 0;  // to whom they were for; broadcasts: sent
  std::uint64_t queue_overflows = 0;
  std::uint64_t aqm_drops = 0;
  std::uint64_t given_up = 0;
  std::uint64_t marked = 0;
  Bytes offered_bytes;
  Bytes delivered_bytes;
  std::uint64_t max_waiting = 0;                                          // packets
  Duration on_air{};                                                      // sending
  std::array<std::uint64_t, 5> frames{};                                  // by kind
  std::array<std::array<std::uint64_t, frame_outcomes>, 5> by_outcome{};  // by kind
};

/// What has left the model.
struct MediumEvents {
  /// A packet as it is received, while its sender keeps it: until its departure.
  struct Delivery {
    StationIndex from = 0;
    StationIndex to = 0;
    Packet packet;
    Instant at{};
  };
  struct Leaving {
    StationIndex from = 0;
    Departure departure;
  };
  std::vector<Delivery> deliveries;
  std::vector<AirFrame> frames;     // in the order of their ends
  std::vector<Leaving> departures;  // of packets that their senders are through with
};

class Medium {
 public:
  Medium(const MediumConfig& config, std::uint64_t seed, std::uint32_t id);

  /// A packet for the station `packet.next_hop` arrives at station `from`. Brings the model to `at`
  /// first; `at` must not lie before now().
  void offer(StationIndex from, const Packet& packet, Instant at, MediumEvents& events);
  /// Brings the model to `to`; frames that begin at `to` do so when it goes on.
  void advance(Instant to, MediumEvents& events);

  /// No packet is delivered before this instant; nothing if none will be until one arrives.
  [[nodiscard]] std::optional<Instant> next_delivery() const;
  [[nodiscard]] Instant now() const { return now_; }
  [[nodiscard]] std::size_t stations() const { return stations_.size(); }
  /// Packets at a station.
  [[nodiscard]] std::size_t held(StationIndex station) const;
  template <class Visit>
  void for_each_held(StationIndex station, Visit visit) const {
    const Station& mine = stations_[station];
    if (mine.sending) visit(mine.sending->packet);
    mine.queue->for_each(visit);
  }
  [[nodiscard]] const StationCounters& counters(StationIndex station) const {
    return stations_[station].counters;
  }
  [[nodiscard]] const Reach& reach() const { return reach_; }

 private:
  using FrameSlot = std::uint32_t;
  enum class Phase : std::uint8_t { move, end, timeout, reservation_check, begin };
  enum class Awaited : std::uint8_t { nothing, cts, ack };

  struct Event {
    Instant at;
    Phase phase = Phase::move;
    StationIndex station = 0;
    std::uint64_t turn = 0;  // valid if it is still the station's for this phase
    bool operator>(const Event& other) const {
      return std::tie(at, phase, station, turn) >
             std::tie(other.at, other.phase, other.station, other.turn);
    }
  };
  /// The packet whose turn it is.
  struct Sending {
    Packet packet;
    std::uint64_t number = 0;
    unsigned attempt = 1;
    unsigned short_retries = 0;
    unsigned long_retries = 0;
    std::optional<Instant> delivered;
  };
  struct Signal {
    FrameSlot frame = 0;
    double power = 0;
    bool interferes = false;
  };
  /// The frame that is being received.
  struct Reception {
    FrameSlot frame = 0;
    double power = 0;
    std::optional<FrameOutcome> disturbed;
  };
  struct Station {
    explicit Station(const Phy& phy) : access(phy) {}
    ChannelAccess access;
    std::unique_ptr<Queue> queue;
    std::optional<Sending> sending;
    std::uint32_t cw = 0;
    std::uint64_t draws = 0;
    Awaited awaited = Awaited::nothing;
    Instant asked{};                   // end of the frame that is to be answered
    std::optional<AirFrame> response;  // about to be sent
    std::optional<FrameSlot> transmitting;
    std::optional<Reception> reception;
    Instant reception_began = Instant::min();
    std::vector<Signal> signals;
    Instant reserving_rts = Instant::min();  // end of the RTS that NAV follows from, if it does
    std::array<std::uint64_t, 5> turns{};    // by phase
    std::unordered_map<StationIndex, std::uint64_t> last_received;  // number of a packet, by sender
    std::size_t next_move = 0;
    std::uint64_t packets = 0;
    std::uint64_t frames = 0;
    bool is_touched = false;
    StationCounters counters;
  };
  struct OnAir {
    AirFrame frame;
    std::vector<Heard> heard;
  };
  struct PairLoss {
    std::unique_ptr<LossModel> model;
    std::uint64_t index = 0;
  };

  void schedule(StationIndex station, Phase phase, Instant at);
  void cancel(StationIndex station, Phase phase) { ++stations_[station].turns[index_of(phase)]; }
  [[nodiscard]] bool is_valid(const Event& event) const {
    return event.turn == stations_[event.station].turns[index_of(event.phase)];
  }
  static std::size_t index_of(Phase phase) { return static_cast<std::size_t>(phase); }
  /// Takes all valid events of the first one's instant and phase.
  std::vector<StationIndex> take_events();

  void touch(StationIndex station);
  void settle_touched();
  void plan_access(StationIndex station);
  void serve_queue(StationIndex station);
  void back_off(StationIndex station);

  void move(StationIndex station);
  void begin_frames(const std::vector<StationIndex>& begins);
  [[nodiscard]] std::optional<AirFrame> next_frame(StationIndex station);
  [[nodiscard]] AirFrame first_of_exchange(StationIndex station) const;
  [[nodiscard]] AirFrame data_frame(StationIndex station) const;
  void put_on_air(AirFrame frame);
  void hear(FrameSlot slot);
  void listen(FrameSlot slot, const Heard& heard);
  void disturb(Station& station, StationIndex index);
  [[nodiscard]] std::optional<FrameOutcome> disturbance(const Station& station, FrameSlot slot,
                                                        double power,
                                                        std::optional<double> ratio) const;
  [[nodiscard]] FrameOutcome cause(const AirFrame& frame, const AirFrame& other) const;
  void note(FrameSlot slot, StationIndex receiver, FrameOutcome outcome);

  void end_frames(const std::vector<StationIndex>& senders);
  void finish_reception(StationIndex station, const OnAir& ended);
  void finish_sending(StationIndex station, const AirFrame& frame);
  [[nodiscard]] bool is_lost(StationIndex station, const AirFrame& frame);
  void answer(StationIndex station, const AirFrame& frame);
  void heed(StationIndex station, const AirFrame& frame);
  void deliver(StationIndex station, const AirFrame& frame);
  void await(StationIndex station, Awaited what);
  void time_out(StationIndex station);
  void check_reservation(StationIndex station);
  void fail(StationIndex station);
  void finish_packet(StationIndex station, Fate fate);
  [[nodiscard]] bool uses_rts(const Packet& packet) const;

  MediumConfig config_;
  std::uint64_t seed_;
  std::uint32_t id_;
  Phy phy_;
  Reach reach_;
  std::vector<Station> stations_;
  std::vector<OnAir> on_air_;
  std::vector<FrameSlot> free_;
  std::multiset<Instant> data_ends_;
  std::map<std::uint64_t, PairLoss> losses_;  // by sender and receiver
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<StationIndex> touched_;
  Instant now_{};
  MediumEvents* out_ = nullptr;  // of the call that is under way
  QueueEvents queue_events_;
};

}  // namespace nagi::model
