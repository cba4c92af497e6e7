// SPDX-License-Identifier: Apache-2.0
//
// The link model in real time, between network interfaces. Frames that arrive enter the model at
// the instant the kernel saw them; what the model delivers is sent as soon as it is due.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "daemon/clock.hpp"
#include "daemon/config.hpp"
#include "daemon/histogram.hpp"
#include "io/frame_pool.hpp"
#include "io/port.hpp"
#include "model/link.hpp"

namespace nagi::daemon {

class Emulator {
 public:
  /// Opens all interfaces of `config`. Offloads that spoil emulation are switched off (and on again
  /// at the end) or refused. Throws InputError, or std::system_error if the kernel refuses.
  explicit Emulator(const Config& config);
  Emulator(const Emulator&) = delete;
  Emulator& operator=(const Emulator&) = delete;
  ~Emulator();

  /// Descriptors that become readable when frames wait.
  [[nodiscard]] std::vector<int> descriptors() const;
  /// Takes in what waits at the descriptors in `readable` and sends what is due. Returns when
  /// something is next due (CLOCK_MONOTONIC, ns), or nothing if all is quiet. Due in the past: call
  /// again at once.
  std::optional<std::int64_t> serve(const std::vector<int>& readable);

  /// Notes, for the account, how this process is scheduled.
  void set_scheduling(std::string scheduling) { scheduling_ = std::move(scheduling); }
  /// What happened so far, as links.json has it.
  [[nodiscard]] nlohmann::json account(bool complete);

 private:
  /// One direction of a link: frames in from one port, out at the other.
  struct Lane {
    Lane(const model::DirectionConfig& configuration, std::uint64_t seed, std::uint32_t link,
         model::Way way, io::Port& input, io::Port& output)
        : config(configuration), model(configuration, seed, link, way), in(input), out(output) {}

    model::DirectionConfig config;
    model::Direction model;
    io::Port& in;
    io::Port& out;
    Histogram transit_error;     // ns between being due and having been sent
    Histogram arrival_lateness;  // ns by which the model had moved past an arrival; 0 for most
    std::vector<io::Frame> outgoing;
    std::vector<model::Instant> due;
  };

  struct Link {
    std::string name;
    std::uint32_t id;
    io::Port* a;
    io::Port* b;
    std::unique_ptr<Lane> a_to_b;
    std::unique_ptr<Lane> b_to_a;
  };

  struct SwitchedOff {
    std::string interface;
    std::string offload;
  };

  void settle_offloads(const std::string& interface);
  io::Port& open(const std::string& interface);
  /// Returns the instant up to which everything that arrived on this lane is known.
  model::Instant take_in(Lane& lane, model::Instant now);
  void settle(Lane& lane);
  void send(Lane& lane);
  [[nodiscard]] static nlohmann::json account_of(const Lane& lane);
  [[nodiscard]] nlohmann::json account_of(io::Port& port) const;

  Config config_;
  RealTime time_;
  std::int64_t started_realtime_ns_;
  std::unique_ptr<io::FramePool> pool_;
  std::vector<std::unique_ptr<io::Port>> ports_;
  std::vector<Link> links_;
  std::vector<Lane*> lanes_;
  std::vector<SwitchedOff> switched_off_;
  std::vector<std::string> notices_;
  std::string scheduling_ = "SCHED_OTHER";
  std::vector<io::Arrival> arrivals_;
  std::vector<model::Departure> departures_;
  std::vector<io::Frame> frames_;  // by slot: the frame that the model knows by its slot's number
};

}  // namespace nagi::daemon
