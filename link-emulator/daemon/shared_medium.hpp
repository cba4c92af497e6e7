// SPDX-License-Identifier: Apache-2.0
//
// A running shared medium: frames that arrive at the ports of its stations pass through the model,
// and copies of them are due at the ports of the stations that receive them. The destination of a
// frame is the station with its destination MAC address. A station has the MAC address in the
// configuration, and the addresses from which frames have arrived at its port.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "daemon/config.hpp"
#include "daemon/held_frame.hpp"
#include "daemon/link_direction.hpp"
#include "daemon/monitor.hpp"
#include "daemon/recorder.hpp"
#include "io/port.hpp"
#include "model/medium/medium.hpp"
#include "service/histogram.hpp"

namespace nagi::daemon {

/// A running shared medium.
class SharedMedium {
 public:
  /// Create the medium. `first_number` is the number of its first station in packet_record.hpp;
  /// `ports` has one port per station.
  SharedMedium(std::uint8_t first_number, const MediumSettings& settings, std::uint64_t seed,
               std::vector<io::Port*> ports, const Shared& shared);
  SharedMedium(const SharedMedium&) = delete;
  SharedMedium& operator=(const SharedMedium&) = delete;

  [[nodiscard]] const std::string& name() const { return settings_.name; }
  [[nodiscard]] const std::vector<io::Port*>& ports() const { return ports_; }
  [[nodiscard]] const model::Medium& model() const { return model_; }
  /// Return the number of frames taken in so far.
  [[nodiscard]] std::uint64_t arrived() const { return arrived_; }

  /// Read frames from the ports whose descriptors are in `readable` or that can be read without a
  /// system call, and advance the model to `now`, a reading of the clock before this call.
  void advance(Instant now, const std::vector<int>& readable);
  /// Hand over the frames that are due, and return their number.
  std::size_t hand_over();
  /// Record the packets that have left the model, and the frames that have ended.
  void record_results();

  /// Record the packets that are still held at the end.
  void finish(runtime::Notices& notices);
  /// Return the configuration and the counters of the medium, in the format of links.json.
  /// `account_of` is a function that returns the counters of a port as JSON.
  [[nodiscard]] nlohmann::json account(
      const std::function<nlohmann::json(io::Port&)>& account_of) const;
  [[nodiscard]] std::uint64_t records_lost() const { return monitor_ ? monitor_->lost() : 0; }

 private:
  /// A copy of a frame that is due at a port, with its sender and the original.
  struct Due {
    model::StationIndex from;
    io::Frame frame;
    Instant at;
    io::Slot original;
  };
  struct StationAccount {
    std::uint32_t arrived = 0;
    runtime::Histogram transit_error;     // time from being due to being handed over, ns
    runtime::Histogram arrival_lateness;  // time by which the model was ahead of an arrival, ns
    std::uint64_t late_events = 0;
  };
  struct Arrival {
    Instant at;
    model::StationIndex station;
    io::Arrival arrival;
  };

  [[nodiscard]] std::uint8_t number(model::StationIndex station) const {
    return static_cast<std::uint8_t>(first_number_ + station);
  }
  void read_arrivals(model::StationIndex station);
  void offer(const Arrival& arrival);
  [[nodiscard]] model::StationIndex next_hop(const std::uint8_t* frame, model::StationIndex from);
  void copy(const model::MediumEvents::Delivery& delivery);
  void hand_over_at(model::StationIndex station);
  void record(const model::AirFrame& frame);

  std::uint8_t first_number_;
  MediumSettings settings_;
  model::Medium model_;
  std::vector<io::Port*> ports_;
  runtime::RealTime& time_;
  runtime::Ports& all_ports_;
  io::FramePool& pool_;
  Recorder& recorder_;
  std::unique_ptr<Monitor> monitor_;  // null unless the configuration names a file
  std::map<MacAddress, model::StationIndex> stations_by_mac_;
  std::vector<MacAddress> macs_;  // by station
  std::vector<StationAccount> accounts_;
  std::uint64_t arrived_ = 0;
  std::vector<io::Arrival> batch_;
  std::vector<Arrival> arrivals_;
  model::MediumEvents events_;
  std::vector<std::vector<Due>> due_;  // by receiving station
  std::vector<io::Frame> frames_;
};

}  // namespace nagi::daemon
