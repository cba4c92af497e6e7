// SPDX-License-Identifier: Apache-2.0
//
// A shared medium at work: frames that come in at the ports of its stations go through the model,
// and copies of them are due at the ports of the stations that receive them. Frames are for the
// station that has their destination's MAC address: one that the configuration names, or that
// frames have come from.
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

class SharedMedium {
 public:
  /// `first_number`: of packet_record.hpp, its first station's. `ports`: one a station.
  SharedMedium(std::uint8_t first_number, const MediumSettings& settings, std::uint64_t seed,
               std::vector<io::Port*> ports, const Shared& shared);
  SharedMedium(const SharedMedium&) = delete;
  SharedMedium& operator=(const SharedMedium&) = delete;

  [[nodiscard]] const std::string& name() const { return settings_.name; }
  [[nodiscard]] const std::vector<io::Port*>& ports() const { return ports_; }
  [[nodiscard]] const model::Medium& model() const { return model_; }
  /// Frames taken in so far.
  [[nodiscard]] std::uint64_t arrived() const { return arrived_; }

  /// Takes in what waits at the ports whose descriptors are in `readable`, or that cost nothing to
  /// ask, and brings the model to `now`, which was read before.
  void bring_on(Instant now, const std::vector<int>& readable);
  /// Hands over what is due. Returns how many frames.
  std::size_t hand_over();
  /// Records what has left the model.
  void conclude();

  /// It is over: records what is still held.
  void finish(runtime::Notices& notices);
  /// As links.json has it; `account_of` gives that of a port.
  [[nodiscard]] nlohmann::json account(
      const std::function<nlohmann::json(io::Port&)>& account_of) const;
  [[nodiscard]] std::uint64_t records_lost() const { return monitor_ ? monitor_->lost() : 0; }

 private:
  /// What is due at a port: a copy, and whose.
  struct Due {
    model::StationIndex from;
    io::Frame frame;
    Instant at;
    io::Slot original;
  };
  struct StationAccount {
    std::uint32_t arrived = 0;
    runtime::Histogram transit_error;     // ns between being due and being handed over
    runtime::Histogram arrival_lateness;  // ns by which the model had moved past an arrival
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
  void take_in(model::StationIndex station);
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
  std::unique_ptr<Monitor> monitor_;  // where one is asked for
  std::map<MacAddress, model::StationIndex> stations_by_mac_;
  std::vector<MacAddress> macs_;  // by station
  std::vector<StationAccount> accounts_;
  std::uint64_t arrived_ = 0;
  std::vector<io::Arrival> batch_;
  std::vector<Arrival> arrivals_;
  model::MediumEvents events_;
  std::vector<std::vector<Due>> due_;  // by the station that receives
  std::vector<io::Frame> frames_;
};

}  // namespace nagi::daemon
