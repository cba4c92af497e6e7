// SPDX-License-Identifier: Apache-2.0
//
// One direction of a link at work: frames that come in at one port go through the model, and are
// due at the other. Frames enter the model at the instant the kernel saw them. Who hands them over
// when they are due, and when this is brought on, is a driver's business.
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

/// What all directions share.
struct Shared {
  runtime::RealTime& time;
  runtime::Ports& ports;
  Recorder& recorder;
};

class LinkDirection {
 public:
  /// `number` is that of packet_record.hpp. `socket`: of a radio; else null.
  LinkDirection(std::uint8_t number, const model::DirectionConfig& config,
                std::unique_ptr<model::Direction> model, std::unique_ptr<RadioSocket> socket,
                io::Port& in, io::Port& out, const Shared& shared);
  /// The core of an FPGA does what the configuration says.
  LinkDirection(std::uint8_t number, const model::DirectionConfig& config,
                std::unique_ptr<FpgaDirection> core, io::Port& in, io::Port& out,
                const Shared& shared);
  LinkDirection(const LinkDirection&) = delete;
  LinkDirection& operator=(const LinkDirection&) = delete;

  [[nodiscard]] io::Port& in() const { return in_; }
  [[nodiscard]] io::Port& out() const { return out_; }
  /// The socket of a radio; else null.
  [[nodiscard]] const RadioSocket* socket() const { return transmissions_.socket(); }
  [[nodiscard]] const model::DirectionModel& model() const { return *model_; }
  /// Whether the model stands still for want of an outcome.
  [[nodiscard]] bool awaits_outcome() const { return here_ != nullptr && here_->awaits_outcome(); }
  /// No packet that arrives is due sooner after that, and what is under way is known ahead;
  /// nothing: packets are known when they are due.
  [[nodiscard]] Duration lookahead() const;
  /// Frames taken in so far.
  [[nodiscard]] std::uint64_t arrived() const { return arrived_; }

  /// Takes in what waits at the port. Returns the instant up to which everything that arrived is
  /// known; `now` was read before.
  Instant take_in(Instant now);
  /// Whether take_in() left frames at the port: it does not let others wait for long.
  [[nodiscard]] bool has_unread() const { return has_unread_; }
  /// Brings the model to `known`, unless it has been there.
  void bring_on(Instant known);
  /// Has all that is under way leave the model, at the instants at which it will be due.
  void take_under_way();
  /// Sorts out what has left the model: what was dropped, and what is due.
  void settle();

  /// What is due at the other port. Whoever hands it over notes each frame, and empties this.
  [[nodiscard]] std::vector<model::Departure>& due() { return due_; }
  /// What is noted of a frame that is due; it is marked or corrupted, if its packet is.
  const HeldFrame& leaving(const model::Departure& departure);
  /// A frame was handed over `late_ns` after it was due.
  void note_handed_over(const HeldFrame& held, const model::Departure& departure,
                        std::int64_t late_ns);
  /// A frame was handed over before it was due.
  void note_handed_over_ahead(const HeldFrame& held, const model::Departure& departure);

  /// Replaces keys of the configuration from now on: `wanted` is an object at `where`. No packet is
  /// lost by it. Returns the new configuration. Throws ConfigError.
  nlohmann::json change(const nlohmann::json& wanted, const nlohmann::json::json_pointer& where);

  /// It is over: records what is still held.
  void finish();
  /// As links.json has it.
  [[nodiscard]] nlohmann::json account() const;

 private:
  /// `here` and `core` point to the model, or are null.
  LinkDirection(std::uint8_t number, const model::DirectionConfig& config, model::Direction* here,
                FpgaDirection* core, std::unique_ptr<model::DirectionModel> model,
                std::unique_ptr<RadioSocket> socket, io::Port& in, io::Port& out,
                const Shared& shared);

  struct Change {
    Instant at;
    nlohmann::json config;
  };

  /// False: the model cannot take it yet.
  bool take_in_one(const io::Arrival& arrival);
  void drop(const model::Departure& departure);
  /// A duplicate, in a frame of its own.
  model::Departure copy_of(const model::Departure& departure);

  std::uint8_t number_;
  model::DirectionConfig config_;
  std::vector<Change> changes_;
  std::unique_ptr<model::DirectionModel> model_;
  model::Direction* here_;  // the same, where it is in this process; else null
  FpgaDirection* core_;     // the same, where it is an FPGA's; else null
  io::Port& in_;
  io::Port& out_;
  runtime::RealTime& time_;
  runtime::Ports& ports_;
  io::FramePool& pool_;
  Recorder& recorder_;
  Transmissions transmissions_;
  std::uint64_t arrived_ = 0;
  runtime::Histogram transit_error_;     // ns between being due and being handed over
  runtime::Histogram arrival_lateness_;  // ns by which the model had moved past an arrival
  std::uint64_t late_events_ = 0;
  std::vector<io::Arrival> arrivals_;
  bool has_unread_ = false;
  std::deque<io::Arrival> postponed_;  // the model stands still for want of an outcome
  std::vector<model::Departure> departures_;
  std::vector<model::Departure> due_;
};

}  // namespace nagi::daemon
