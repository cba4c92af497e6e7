// SPDX-License-Identifier: Apache-2.0
//
// A medium that stations share by the distributed coordination function (DCF) of IEEE 802.11-2020,
// clause 10: carrier sense, NAV, backoff, RTS/CTS, ACKs, retry limits, broadcasts, and one
// interface queue per station. It is a discrete-event model without clock and I/O.
//
// The model neglects the propagation time of signals, which is shorter than the part of a slot that
// the standard reserves for it (aAirPropagationTime). Two stations whose backoffs end at the same
// instant collide.
//
// The order of events at one instant is: moves, ends of frames, timeouts, arrivals of packets,
// begins of frames. Frames that begin at the same instant do not sense each other.
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

/// A change of a station's position, at a time after the epoch.
struct Move {
  Duration at{};
  Position to;
};

struct StationConfig {
  Position position;
  std::vector<Move> trace;
};

/// The cases in which EIFS replaces DIFS. With `frames`, EIFS follows frames whose decoding began
/// and that were not received correctly, as in the standard. With `signals`, EIFS also follows
/// signals that were only sensed, as in ns-2.
enum class EifsAfter : std::uint8_t { frames, signals };

struct MediumConfig {
  PhyConfig phy;
  std::optional<Bytes>
      rts_threshold;  // longer MPDUs use RTS and CTS; without a value, no MPDU does
  unsigned short_retry_limit = 7;
  unsigned long_retry_limit = 4;
  std::uint32_t cw_min = 31;
  std::uint32_t cw_max = 1023;
  QueueConfig queue = DropTail{Packets{50}};
  LossConfig loss;  // applied to each frame at the station to which it is addressed
  bool resets_nav = true;
  EifsAfter eifs_after = EifsAfter::frames;
  ReachConfig reach;
  std::vector<StationConfig> stations;
};

/// Running totals of a station.
struct StationCounters {
  std::uint64_t offered = 0;
  std::uint64_t delivered = 0;  // received by their destination; broadcasts count when sent
  std::uint64_t queue_overflows = 0;
  std::uint64_t aqm_drops = 0;
  std::uint64_t given_up = 0;
  std::uint64_t marked = 0;
  Bytes offered_bytes;
  Bytes delivered_bytes;
  std::uint64_t max_waiting = 0;                                          // packets in the queue
  Duration on_air{};                                                      // time spent transmitting
  std::array<std::uint64_t, 5> frames{};                                  // by frame kind
  std::array<std::array<std::uint64_t, frame_outcomes>, 5> by_outcome{};  // by frame kind
};

/// Results of the model. The caller processes them and empties the lists.
struct MediumEvents {
  /// The reception of a packet. Its sender holds the packet until the departure.
  struct Delivery {
    StationIndex from = 0;
    StationIndex to = 0;
    Packet packet;
    Instant at{};
  };
  /// The departure of a packet from its sender.
  struct Leaving {
    StationIndex from = 0;
    Departure departure;
  };
  std::vector<Delivery> deliveries;
  std::vector<AirFrame> frames;  // in the order of their ends
  std::vector<Leaving> departures;
};

/// The model of a medium with its stations.
class Medium {
 public:
  /// Create the medium. `seed` and `id` (the id of the medium) select its random numbers.
  Medium(const MediumConfig& config, std::uint64_t seed, std::uint32_t id);

  /// Add a packet for station `packet.next_hop` to the queue of station `from`, after advancing the
  /// model to `at`. `at` must not lie before now().
  void offer(StationIndex from, const Packet& packet, Instant at, MediumEvents& events);
  /// Process all events up to `to`. Frames that begin exactly at `to` begin at the next call, so
  /// that packets may still arrive at that instant.
  void advance(Instant to, MediumEvents& events);

  /// Return an instant before which the model delivers no packet, or nothing if it delivers none
  /// until the next offer().
  [[nodiscard]] std::optional<Instant> next_delivery() const;
  [[nodiscard]] Instant now() const { return now_; }
  [[nodiscard]] std::size_t stations() const { return stations_.size(); }
  /// Return the number of packets that a station holds, including the one that it is sending.
  [[nodiscard]] std::size_t held(StationIndex station) const;
  /// Call `visit(packet)` for each packet that a station holds.
  template <class Visit>
  void for_each_held(StationIndex station, Visit visit) const {
    const Station& holder = stations_[station];
    if (holder.sending) visit(holder.sending->packet);
    holder.queue->for_each(visit);
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
    std::uint64_t version = 0;  // the event is valid while it equals Station::versions[phase]
    bool operator>(const Event& other) const {
      return std::tie(at, phase, station, version) >
             std::tie(other.at, other.phase, other.station, other.version);
    }
  };
  /// The packet that a station is sending.
  struct Sending {
    Packet packet;
    std::uint64_t number = 0;
    unsigned attempt = 1;
    unsigned short_retries = 0;
    unsigned long_retries = 0;
    std::optional<Instant> delivered;  // time of the first correct reception
  };
  /// A frame on the air as a station receives it.
  struct Signal {
    FrameSlot frame = 0;
    double power = 0;
    bool interferes = false;
  };
  /// The frame that a station is receiving.
  struct Reception {
    FrameSlot frame = 0;
    double power = 0;
    std::optional<FrameOutcome> error;  // set if the reception is disturbed
  };
  struct Station {
    explicit Station(const Phy& phy) : access(phy) {}
    ChannelAccess access;
    std::unique_ptr<Queue> queue;
    std::optional<Sending> sending;
    std::uint32_t cw = 0;
    std::uint64_t draws = 0;  // number of backoffs drawn
    Awaited awaited = Awaited::nothing;
    Instant request_end{};             // end of the frame whose response is awaited
    std::optional<AirFrame> response;  // frame to send after SIFS
    std::optional<FrameSlot> transmitting;
    std::optional<Reception> reception;
    Instant reception_began = Instant::min();
    std::vector<Signal> signals;
    Instant nav_rts_end = Instant::min();     // end of the RTS that set the NAV, if any
    std::array<std::uint64_t, 5> versions{};  // of the next event, by phase
    // Number of the last packet received, by sender.
    std::unordered_map<StationIndex, std::uint64_t> last_received;
    std::size_t next_move = 0;
    std::uint64_t packets = 0;  // number of packets taken from the queue
    std::uint64_t frames = 0;   // number of frames sent
    bool awaits_planning = false;
    StationCounters counters;
  };
  /// A frame on the air, and the stations that its signal reaches.
  struct OnAir {
    AirFrame frame;
    std::vector<Heard> heard;
  };
  /// The loss model of a sender and a receiver.
  struct PairLoss {
    std::unique_ptr<LossModel> model;
    std::uint64_t index = 0;  // number of frames that the model has decided on
  };

  void schedule(StationIndex station, Phase phase, Instant at);
  void cancel(StationIndex station, Phase phase) { ++stations_[station].versions[index_of(phase)]; }
  [[nodiscard]] bool is_valid(const Event& event) const {
    return event.version == stations_[event.station].versions[index_of(event.phase)];
  }
  static std::size_t index_of(Phase phase) { return static_cast<std::size_t>(phase); }
  /// Remove all events that have the instant and phase of the first event. Return the stations of
  /// the valid events.
  std::vector<StationIndex> pop_events();

  /// Request plan_access() of a station at the end of this step.
  void mark_for_planning(StationIndex station);
  void plan_marked_stations();

  // medium_access.cpp
  void plan_access(StationIndex station);
  void serve_queue(StationIndex station);
  void back_off(StationIndex station);

  void move(StationIndex station);
  [[nodiscard]] std::optional<AirFrame> next_frame(StationIndex station);
  [[nodiscard]] AirFrame first_frame_of_exchange(StationIndex station) const;
  [[nodiscard]] AirFrame data_frame(StationIndex station) const;
  [[nodiscard]] bool uses_rts(const Packet& packet) const;

  // medium_air.cpp
  void begin_frames(const std::vector<StationIndex>& begins);
  void put_on_air(AirFrame frame);
  void add_signal(FrameSlot slot);
  void start_reception(FrameSlot slot, const Heard& heard);
  void add_interference(Station& station, StationIndex index);
  [[nodiscard]] std::optional<FrameOutcome> find_disturbance(const Station& station, FrameSlot slot,
                                                             double power,
                                                             std::optional<double> ratio) const;
  [[nodiscard]] FrameOutcome collision_kind(const AirFrame& frame, const AirFrame& other) const;
  void record_outcome(FrameSlot slot, StationIndex receiver, FrameOutcome outcome);

  void end_frames(const std::vector<StationIndex>& senders);

  // medium_exchange.cpp
  void finish_reception(StationIndex station, const OnAir& ended);
  void finish_sending(StationIndex station, const AirFrame& frame);
  [[nodiscard]] bool is_lost(StationIndex station, const AirFrame& frame);
  void handle_addressed_frame(StationIndex station, const AirFrame& frame);
  void update_nav(StationIndex station, const AirFrame& frame);
  void deliver(StationIndex station, const AirFrame& frame);
  void await_response(StationIndex station, Awaited awaited);
  void time_out(StationIndex station);
  void check_reservation(StationIndex station);
  void retry_or_give_up(StationIndex station);
  void finish_packet(StationIndex station, Fate fate);

  MediumConfig config_;
  std::uint64_t seed_;
  std::uint32_t id_;
  Phy phy_;
  Reach reach_;
  std::vector<Station> stations_;
  std::vector<OnAir> on_air_;
  std::vector<FrameSlot> free_slots_;
  std::multiset<Instant> data_ends_;          // ends of the DATA frames on the air
  std::map<std::uint64_t, PairLoss> losses_;  // by sender x number of stations + receiver
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<StationIndex> stations_to_plan_;
  Instant now_{};
  MediumEvents* output_ = nullptr;  // results of the current call
  QueueEvents queue_events_;
};

}  // namespace nagi::model
