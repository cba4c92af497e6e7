// SPDX-License-Identifier: Apache-2.0
//
// The core of an FPGA that carries a link, in a process of its own (fpga_protocol.hpp): both
// directions, whose time is one. Frames go through the core whole: those that leave a link are
// those that the core sent.
//
// Where time stands still meanwhile, the core is asked as seldom as may be: what has come is kept
// until a packet may leave, or so many have come that they are worth a message. In real time it
// goes to the core at once, which then has less to do when a packet is due.
//
// Where time stands still, the last millisecond of a delay is not the core's: so long before it is
// due a packet leaves the core, so that it can be handed to the kernel ahead, as nagi-link's own.
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

/// What a link's core has to be.
struct FpgaSettings {
  std::uint64_t seed = 0;
  std::uint32_t link = 0;
  std::array<model::DirectionConfig, 2> directions;  // forward, backward
  bool virtual_time = false;
};

class FpgaCore {
 public:
  /// Configures the core behind `socket`. `name`: what errors call the link. Throws InputError if
  /// the core refuses, std::system_error if it is gone.
  FpgaCore(int socket, std::string name, const FpgaSettings& settings, io::FramePool& pool);

  [[nodiscard]] int descriptor() const { return socket_.descriptor(); }
  /// Nothing is asked, so it has ended if its descriptor is readable: throws std::system_error.
  [[noreturn]] void report_end() const;

  void offer(model::DirectionName direction, const model::Packet& packet, Instant at);
  /// A direction may be brought to an instant; the core is, when both may.
  void advance(model::DirectionName direction, Instant to);
  /// Gives the core all that has come so far.
  void catch_up();
  /// Appends what has left a direction since this was last called.
  void take_departures(model::DirectionName direction, std::vector<model::Departure>& departures);
  /// The same, and what has left the core and is due later.
  void take_under_way(model::DirectionName direction, std::vector<model::Departure>& departures);
  /// So long before they are due, packets are known.
  [[nodiscard]] Duration ahead(model::DirectionName direction) const {
    return side(direction).ahead;
  }

  [[nodiscard]] std::optional<Instant> next_delivery(model::DirectionName direction) const;
  [[nodiscard]] Instant now(model::DirectionName direction) const;
  [[nodiscard]] std::size_t held(model::DirectionName direction) const;
  void for_each_held(model::DirectionName direction,
                     const std::function<void(const model::Packet&)>& visit) const;
  /// What the core has counted.
  const model::DirectionCounters& counters(model::DirectionName direction);
  /// As links.json has what only a core counts, as of the last counters().
  [[nodiscard]] nlohmann::json account(model::DirectionName direction) const;

 private:
  struct Arrival {
    Instant at;
    model::DirectionName direction;
    io::Slot slot;
  };

  struct Side {
    model::DirectionConfig config;
    Duration delay{};                               // in the core
    Duration ahead{};                               // and after it
    Instant known{};                                // it may be brought to
    Instant last_arrival{};                         // so far
    Instant last_end{};                             // of a transmission, as far as known
    std::deque<std::optional<model::Packet>> held;  // by index, from `first` on
    std::uint32_t first = 0;
    std::size_t count = 0;  // of those
    std::vector<model::Departure> departures;
    std::deque<model::Departure> under_way;  // from the core, due after now
    model::DirectionCounters counters;
    fpga::CountsOf counted;
  };

  static std::size_t number(model::DirectionName direction) {
    return static_cast<std::size_t>(direction);
  }
  Side& side(model::DirectionName direction) { return sides_.at(number(direction)); }
  [[nodiscard]] const Side& side(model::DirectionName direction) const {
    return sides_.at(number(direction));
  }
  std::span<const std::byte> ask(fpga::MessageWriter& request, fpga::Kind kind);
  void bring_to(Instant to);
  /// No sooner is the packet that came first delivered, or anything after it.
  [[nodiscard]] Instant earliest(const Side& side) const;
  /// `to`: the instant to which the core was brought.
  void take(const fpga::DepartureHead& head, std::span<const std::byte> frame, Instant to);

  std::string name_;
  std::size_t worth_a_message_;  // so many arrivals are
  fpga::Socket socket_;
  io::FramePool& pool_;
  std::array<Side, 2> sides_;
  std::vector<Arrival> waiting_;  // to be given to the core
  Instant now_{};                 // of the core
  Instant next_{};                // nothing happens in it before
};

/// One direction of it.
class FpgaDirection final : public model::DirectionModel {
 public:
  FpgaDirection(std::shared_ptr<FpgaCore> core, model::DirectionName name)
      : core_(std::move(core)), name_(name) {}

  void offer(model::Packet packet, Instant at, std::vector<model::Departure>& departures) override;
  void advance(Instant to, std::vector<model::Departure>& departures) override;
  void take_departures(std::vector<model::Departure>& departures) override {
    core_->take_departures(name_, departures);
  }
  void take_under_way(std::vector<model::Departure>& departures) {
    core_->take_under_way(name_, departures);
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
