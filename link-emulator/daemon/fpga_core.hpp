// SPDX-License-Identifier: Apache-2.0
//
// The core of an FPGA that carries a link, in a process of its own (fpga_protocol.hpp). The core
// has one time for both directions. Complete frames pass through the core, and the link sends the
// frames as they left the core.
//
// In virtual time, in which the clock stops while this process runs, nagi-link sends the core as
// few messages as possible: it collects arrivals until a packet may leave, or until there are
// enough for a message. In real time it sends each arrival to the core immediately, so that less
// work remains when a packet is due.
//
// In virtual time the core does not emulate the last millisecond of a delay. A packet leaves the
// core one millisecond before it is due, so that nagi-link can hand it to the kernel ahead of time.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "daemon/fpga_socket.hpp"
#include "io/frame_pool.hpp"
#include "model/direction.hpp"
#include "model/direction_model.hpp"
#include "model/random.hpp"

namespace nagi::daemon {

/// The configuration of a link's core.
struct FpgaSettings {
  std::uint64_t seed = 0;
  std::uint32_t link = 0;
  std::array<model::DirectionConfig, 2> directions;  // forward, backward
  bool virtual_time = false;
};

/// The connection to the core.
class FpgaCore {
 public:
  /// Configure the core behind `socket`. `name` names the link in errors. Throws InputError if the
  /// core refuses the configuration, std::system_error if its process has ended.
  FpgaCore(int socket, std::string name, const FpgaSettings& settings, io::FramePool& pool);

  [[nodiscard]] int descriptor() const { return socket_.descriptor(); }
  /// Throw std::system_error for the end of the core's process. Call this if the descriptor is
  /// readable while no request is pending.
  [[noreturn]] void report_end() const;

  void offer(model::DirectionName direction, const model::Packet& packet, Instant at);
  /// Allow a direction to advance to an instant. The core advances when both directions are allowed
  /// to.
  void advance(model::DirectionName direction, Instant to);
  /// Send all collected arrivals to the core, and advance the core.
  void catch_up();
  /// Append the packets that have left a direction since the last call.
  void take_departures(model::DirectionName direction, std::vector<model::Departure>& departures);
  /// Append the packets of take_departures(), and those that have left the core and are due later.
  void take_in_flight(model::DirectionName direction, std::vector<model::Departure>& departures);
  /// Return how long before its due time a packet leaves the core.
  [[nodiscard]] Duration ahead(model::DirectionName direction) const {
    return state_of(direction).ahead;
  }

  [[nodiscard]] std::optional<Instant> next_delivery(model::DirectionName direction) const;
  [[nodiscard]] Instant now(model::DirectionName direction) const;
  [[nodiscard]] std::size_t held(model::DirectionName direction) const;
  void for_each_held(model::DirectionName direction,
                     const std::function<void(const model::Packet&)>& visit) const;
  /// Read the core's counters.
  const model::DirectionCounters& counters(model::DirectionName direction);
  /// Return the counters that only a core has, in the format of links.json. Their values are those
  /// at the last call of counters().
  [[nodiscard]] nlohmann::json account(model::DirectionName direction) const;

 private:
  struct Arrival {
    Instant at;
    model::DirectionName direction;
    io::Slot slot;
  };

  /// The state of one direction.
  struct DirectionState {
    model::DirectionConfig config;
    Duration delay{};                               // part of the delay in the core
    Duration ahead{};                               // part of the delay after the core
    Instant may_advance_to{};                       // arrivals up to this instant are known
    Instant last_arrival{};                         // time of the latest arrival
    Instant last_end{};                             // latest known end of a transmission
    std::deque<std::optional<model::Packet>> held;  // packets by index, from index `first` on
    std::uint32_t first = 0;
    std::size_t count = 0;  // number of packets in `held`
    std::vector<model::Departure> departures;
    std::deque<model::Departure> in_flight;  // packets that have left the core and are due later
    model::DirectionCounters counters;
    fpga::CountsOf counted;
  };

  static std::size_t number(model::DirectionName direction) {
    return static_cast<std::size_t>(direction);
  }
  DirectionState& state_of(model::DirectionName direction) { return states_.at(number(direction)); }
  [[nodiscard]] const DirectionState& state_of(model::DirectionName direction) const {
    return states_.at(number(direction));
  }
  std::span<const std::byte> ask(fpga::MessageWriter& request, fpga::Kind kind);
  void advance_core(Instant to);
  /// Return an instant before which the core delivers no held packet.
  [[nodiscard]] Instant earliest(const DirectionState& state) const;
  /// Process a departure in the core's answer to an advance to `to`.
  void take_departure(const fpga::DepartureHead& head, std::span<const std::byte> frame,
                      Instant to);

  std::string name_;
  std::size_t min_arrivals_;  // number of collected arrivals that are worth a message
  fpga::Socket socket_;
  io::FramePool& pool_;
  std::array<DirectionState, 2> states_;
  std::vector<Arrival> waiting_;  // collected arrivals
  Instant now_{};                 // the core's time
  Instant next_{};                // time of the core's next event
};

/// One direction of a core as a model.
class FpgaDirection final : public model::DirectionModel {
 public:
  FpgaDirection(std::shared_ptr<FpgaCore> core, model::DirectionName name)
      : core_(std::move(core)), name_(name) {}

  void offer(model::Packet packet, Instant at, std::vector<model::Departure>& departures) override;
  void advance(Instant to, std::vector<model::Departure>& departures) override;
  void take_departures(std::vector<model::Departure>& departures) override {
    core_->take_departures(name_, departures);
  }
  void take_in_flight(std::vector<model::Departure>& departures) {
    core_->take_in_flight(name_, departures);
  }
  [[nodiscard]] Duration ahead() const { return core_->ahead(name_); }
  [[nodiscard]] std::optional<Instant> next_delivery() const override {
    return core_->next_delivery(name_);
  }
  [[nodiscard]] Instant now() const override { return core_->now(name_); }
  [[nodiscard]] std::size_t held() const override { return core_->held(name_); }
  void for_each_held(const std::function<void(const model::Packet&)>& visit) const override {
    core_->for_each_held(name_, visit);
  }
  [[nodiscard]] const model::DirectionCounters& counters() const override {
    return core_->counters(name_);
  }
  [[nodiscard]] nlohmann::json account() const { return core_->account(name_); }

 private:
  std::shared_ptr<FpgaCore> core_;
  model::DirectionName name_;
};

}  // namespace nagi::daemon
