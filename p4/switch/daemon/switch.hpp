// SPDX-License-Identifier: Apache-2.0
//
// A whole switch in event time: the machine that runs the program, and the traffic manager of its
// ports. Frames and instants in, frames and instants out; no clock, no network. nagi-switch drives
// it by the machine's clock, replay by the stamps of captures.
//
// The controller's port, if there is one, has neither interface nor queue: what leaves by it is
// kept until the controller comes for it.
//
// At one instant, ends of transmission come before arrivals, and ports have their turn in the order
// of the configuration. Ports are named here by their place in it.
//
// As in bmv2, egress is run for a packet to whatever port, one that is not in the configuration
// too: programs clone to such a port what they are to recirculate. It does not wait there, and only
// what would be sent is dropped.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "io/frame_pool.hpp"
#include "io/port.hpp"
#include "program/machine.hpp"
#include "switch/daemon/config.hpp"
#include "switch/daemon/header_store.hpp"
#include "traffic/output_port.hpp"

namespace nagi::p4 {

// Of frames that come from no interface: jumbo frames, and what programs add to them; in front of a
// frame the same room for headers as a network card leaves.
constexpr std::size_t slot_bytes = 16 * 1024;
constexpr std::uint16_t headroom = io::FramePool::registered_headroom;

/// The bytes of a frame that rates and limits count: without the Ethernet header.
inline nagi::Bytes ip_bytes(std::size_t frame_bytes) {
  constexpr std::size_t ethernet_header = 14;
  return {frame_bytes - std::min(frame_bytes, ethernet_header)};
}

/// A frame that has left: its slot is the caller's.
struct Departure {
  std::size_t port = 0;
  io::Frame frame;
  Instant at;            // when its last bit was sent
  nagi::Bytes counted;   // by the port's server
  bool follows = false;  // it was begun at the end of the one before: the port was backlogged
};

/// A packet that was dropped.
struct Drop {
  enum class Side { in, out };

  std::size_t port = 0;  // where it had come in, or should have left
  Side side = Side::in;
  Instant at;
  std::string_view cause;
  const Headers& headers;  // as it came
};

/// Of packets that came in at a port.
struct InputCounters {
  std::uint64_t received = 0;
  nagi::Bytes received_bytes;
  std::uint64_t dropped_by_program = 0;  // before a queue
  std::uint64_t no_such_port = 0;        // left egress for a port that is not in the configuration
};

/// A packet that left by the controller's port.
struct PacketIn {
  std::vector<std::uint8_t> bytes;
  Instant at;
};

class Switch {
 public:
  /// `dropped`: hears of every packet dropped; may be empty.
  Switch(const SwitchConfig& config, Program program, io::FramePool& pool,
         std::function<void(const Drop&)> dropped);
  Switch(const Switch&) = delete;
  Switch& operator=(const Switch&) = delete;
  /// Gives back the slots of frames that it holds.
  ~Switch();

  /// A frame comes in at a port. Takes its slot. `at` must not lie before now().
  void arrive(std::size_t port, const io::Frame& frame, Instant at);
  /// The same of a frame in no slot yet, now. It must fit one.
  void arrive(std::size_t port, const std::vector<std::uint8_t>& bytes);
  /// The same of a frame that the controller sends: it comes in by the controller's port, now.
  /// Throws InputError if there is no such port, or the frame is too long.
  void arrive_from_controller(const std::vector<std::uint8_t>& bytes);
  /// What has left by the controller's port since the last call.
  [[nodiscard]] std::vector<PacketIn> take_packets_in() { return std::exchange(packets_in_, {}); }
  /// What left by it when there was no more room.
  [[nodiscard]] std::uint64_t packets_in_lost() const { return packets_in_lost_; }
  /// Replaces the program and all its state. What waits in queues leaves by the program that it
  /// came in by.
  void replace(Program program);
  [[nodiscard]] std::uint64_t replaced() const { return replaced_; }

  /// Everything until `to`, which is included and must not lie before now(), happens.
  void advance(Instant to);
  [[nodiscard]] Instant now() const { return now_; }
  [[nodiscard]] std::uint64_t now_us() const {
    return static_cast<std::uint64_t>(now_.time_since_epoch().count()) / 1000;
  }
  /// When a frame next leaves, as far as is known; nothing if none is held.
  [[nodiscard]] std::optional<Instant> next_departure() const;
  /// What has left; to be emptied by the caller. In the order of instants.
  [[nodiscard]] std::vector<Departure>& departures() { return departures_; }

  /// Goes on by other rates and limits of a port from now() on: see OutputPort::change.
  void change(std::size_t port, const QueueConfig& queue);
  /// Has `sample` called every `interval`, with the instant, when all before it has happened.
  void sample_every(Duration interval, std::function<void(Instant)> sample);

  /// Without the controller's.
  [[nodiscard]] std::size_t ports() const { return configured_; }
  /// The place of the controller's port is behind those of the others.
  [[nodiscard]] bool has_cpu_port() const { return ports_.size() > configured_; }
  [[nodiscard]] std::optional<std::size_t> place_of(Port number) const;
  [[nodiscard]] const QueueConfig& queue(std::size_t port) const {
    return ports_[port].out.config();
  }
  [[nodiscard]] const InputCounters& input(std::size_t port) const { return ports_[port].in; }
  [[nodiscard]] const OutputCounters& output(std::size_t port) const {
    return ports_[port].out.counters();
  }
  [[nodiscard]] const QueueStatistics& depth(std::size_t port) const {
    return ports_[port].out.depth();
  }
  QueueStatistics::Stretch take_depth(std::size_t port) {
    return ports_[port].out.take_depth(now_);
  }
  [[nodiscard]] bool is_sending(std::size_t port) const { return ports_[port].sending.has_value(); }
  /// Packets that egress programs made at one instant beyond all measure: dropped.
  [[nodiscard]] std::uint64_t endless_copies() const { return endless_copies_; }
  [[nodiscard]] Machine& machine() { return *machine_; }
  [[nodiscard]] const Machine& machine() const { return *machine_; }
  /// Of all programs so far.
  [[nodiscard]] Counters counters() const;
  /// The digests since the last call, in order.
  [[nodiscard]] std::vector<Digest> take_digests();

 private:
  /// Where a packet is from.
  struct Origin {
    std::size_t port = 0;
    HeaderStore::Place headers = HeaderStore::none;
  };
  struct Item {
    PacketPtr packet;
    Origin origin;
  };
  struct SwitchPort {
    explicit SwitchPort(const PortConfig& config) : number(config.number), out(config.queue) {}
    Port number;
    OutputPort<Item> out;
    std::optional<Departure> sending;
    InputCounters in;
  };
  void move_to(Instant at);
  void settle();
  void offer(Queued& queued, const Origin& origin);
  void serve(std::size_t place);
  void run_egress(std::size_t place, OutputPort<Item>::Taken& taken);
  void run_egress_of_no_port(Queued& queued, const Origin& origin);
  void hand_to_controller(const io::Frame& frame);
  std::optional<io::Frame> egress(PacketPtr packet, Port number, const QueueTimes& times,
                                  const Origin& origin);
  /// The program that a packet came in by.
  [[nodiscard]] Machine& machine_of(const Packet& packet);
  void forget_replaced();
  void take_digests_of(Machine& machine);
  /// Tells of what a program has dropped in its last call. Returns how many there were.
  std::size_t tell_drops(const Machine& machine, std::size_t port, Drop::Side side,
                         const Origin& origin);
  void tell(std::size_t port, Drop::Side side, std::string_view cause, const Origin& origin);

  std::function<void(const Drop&)> dropped_;
  io::FramePool& pool_;
  std::uint64_t seed_;
  std::unique_ptr<Machine> machine_;
  std::vector<std::unique_ptr<Machine>> replaced_machines_;  // whose packets still wait
  Counters earlier_;                                         // of those that have gone
  std::vector<Digest> digests_;                              // that have been taken of machines
  std::uint64_t replaced_ = 0;
  HeaderStore headers_;
  std::vector<SwitchPort> ports_;
  std::size_t configured_;
  std::vector<PacketIn> packets_in_;
  std::uint64_t packets_in_lost_ = 0;
  std::array<std::int16_t, max_ports + 1> place_of_{};  // by number; -1: there is none
  Instant now_{};
  std::vector<Departure> departures_;
  std::vector<Queued> queued_;   // what the machine has handed over and is to be queued,
  std::vector<Origin> origins_;  // and where that is from
  std::uint64_t endless_copies_ = 0;
  std::function<void(Instant)> sample_;
  Duration interval_{};
  Instant next_sample_ = Instant::max();
};

}  // namespace nagi::p4
