// SPDX-License-Identifier: Apache-2.0
//
// One direction of a running link: frames that arrive at one port pass through the model and leave
// at the other port. A frame enters the model at the time of its kernel timestamp. A driver
// advances the direction, and hands over to the kernel the frames that are due.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "daemon/fpga_core.hpp"
#include "daemon/held_frame.hpp"
#include "daemon/recorder.hpp"
#include "daemon/transmissions.hpp"
#include "io/port.hpp"
#include "model/direction.hpp"
#include "model/direction_json.hpp"
#include "service/clock.hpp"
#include "service/histogram.hpp"
#include "service/ports.hpp"

namespace nagi::daemon {

/// The objects that all directions share.
struct Shared {
  runtime::RealTime& time;
  runtime::Ports& ports;
  Recorder& recorder;
};

/// One direction of a running link.
class LinkDirection {
 public:
  /// Create a direction with a model in this process. `number` is the number of the direction in
  /// packet_record.hpp; `socket` leads to a radio, or is null.
  LinkDirection(std::uint8_t number, const model::DirectionConfig& config,
                std::unique_ptr<model::Direction> model, std::unique_ptr<RadioSocket> socket,
                io::Port& in, io::Port& out, const Shared& shared);
  /// Create a direction that the core of an FPGA emulates.
  LinkDirection(std::uint8_t number, const model::DirectionConfig& config,
                std::unique_ptr<FpgaDirection> core, io::Port& in, io::Port& out,
                const Shared& shared);
  LinkDirection(const LinkDirection&) = delete;
  LinkDirection& operator=(const LinkDirection&) = delete;

  [[nodiscard]] io::Port& in() const { return in_; }
  [[nodiscard]] io::Port& out() const { return out_; }
  /// Return the socket of a radio, or null.
  [[nodiscard]] const RadioSocket* socket() const { return transmissions_.socket(); }
  [[nodiscard]] const model::DirectionModel& model() const { return *model_; }
  /// Return whether the model waits for the outcome of a radio's transmission.
  [[nodiscard]] bool awaits_outcome() const {
    return local_ != nullptr && local_->awaits_outcome();
  }
  /// Return how long before its due time a packet can be taken from the model; 0 if a packet can be
  /// taken only when it is due.
  [[nodiscard]] Duration lookahead() const;
  /// Return the number of frames taken in so far.
  [[nodiscard]] std::uint64_t arrived() const { return arrived_; }

  /// Read frames from the port into the model. `now` is a reading of the clock before this call.
  /// Return the instant up to which all arrivals are known.
  Instant read_arrivals(Instant now);
  /// Return whether read_arrivals() left frames at the port. read_arrivals() reads a limited
  /// number, so that other ports need not wait for long.
  [[nodiscard]] bool has_unread() const { return has_unread_; }
  /// Advance the model to `known`, the instant that read_arrivals() returned.
  void advance(Instant known);
  /// Take all transmitted packets from the model, with the instants at which they will be due.
  void take_in_flight();
  /// Process the packets that have left the model: drop them, or add them to due().
  void process_departures();

  /// Return the packets that are due at the other port. The driver hands over their frames, calls
  /// note_handed_over() for each frame, and empties the list.
  [[nodiscard]] std::vector<model::Departure>& due() { return due_; }
  /// Set the mark, or corrupt a bit, in a frame that is due, if the model marked or corrupted its
  /// packet. Return the note of the frame.
  const HeldFrame& prepare_frame(const model::Departure& departure);
  /// Record that a frame was handed over `late_ns` after it was due.
  void note_handed_over(const HeldFrame& held, const model::Departure& departure,
                        std::int64_t late_ns);
  /// Record that a frame was handed over before it was due.
  void note_handed_over_ahead(const HeldFrame& held, const model::Departure& departure);

  /// Replace keys of the configuration from now on. `changes` is the object at the position `where`
  /// of a request. The change loses no packet. Return the new configuration. Throws ConfigError.
  nlohmann::json change(const nlohmann::json& changes, const nlohmann::json::json_pointer& where);

  /// Record the packets that are still held at the end.
  void finish();
  /// Return the configuration and the counters of the direction, in the format of links.json.
  [[nodiscard]] nlohmann::json account() const;

 private:
  /// One of `local` and `core` points to the model; the other is null.
  LinkDirection(std::uint8_t number, const model::DirectionConfig& config, model::Direction* local,
                FpgaDirection* core, std::unique_ptr<model::DirectionModel> model,
                std::unique_ptr<RadioSocket> socket, io::Port& in, io::Port& out,
                const Shared& shared);

  struct Change {
    Instant at;
    nlohmann::json config;
  };

  /// Add an arrival to the model. Return false if the model cannot accept it yet.
  bool offer_arrival(const io::Arrival& arrival);
  void drop(const model::Departure& departure);
  /// Copy a packet with its frame into another slot.
  model::Departure copy_of(const model::Departure& departure);

  std::uint8_t number_;
  model::DirectionConfig config_;
  std::vector<Change> changes_;
  std::unique_ptr<model::DirectionModel> model_;
  model::Direction* local_;  // the model if it runs in this process, else null
  FpgaDirection* core_;      // the model if it runs in an FPGA, else null
  io::Port& in_;
  io::Port& out_;
  runtime::RealTime& time_;
  runtime::Ports& ports_;
  io::FramePool& pool_;
  Recorder& recorder_;
  Transmissions transmissions_;
  std::uint64_t arrived_ = 0;
  runtime::Histogram transit_error_;     // time from being due to being handed over, ns
  runtime::Histogram arrival_lateness_;  // time by which the model was ahead of an arrival, ns
  std::uint64_t late_events_ = 0;
  std::vector<io::Arrival> arrivals_;
  bool has_unread_ = false;
  std::deque<io::Arrival> postponed_;  // arrivals while the model waits for an outcome
  std::vector<model::Departure> departures_;
  std::vector<model::Departure> due_;
};

}  // namespace nagi::daemon
