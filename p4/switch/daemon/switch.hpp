// SPDX-License-Identifier: Apache-2.0
//
// A switch as a discrete-event simulation: the machine that executes the P4 program, and the queues
// of its ports. It has neither a clock nor a network: callers pass frames with their times of
// arrival, and fetch frames with their times of departure. `nagi-switch run` advances it by the
// system's clock, `replay` by the timestamps of captures.
//
// The controller's port, if there is one, has neither an interface nor a queue. Packets that leave
// by this port are stored until the controller fetches them.
//
// At equal times, ends of transmissions are processed before arrivals, and ports in the order of
// the configuration. In this file, a port is identified by its index in the configuration.
//
// As in bmv2, egress also runs for packets to a port that is not in the configuration, because
// programs use such a port for clones that they recirculate. These packets do not wait in a queue.
// Those that egress would send are dropped.
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

// Length of slots for frames that do not come from an interface: enough for jumbo frames and for
// headers that programs add.
constexpr std::size_t slot_bytes = 16 * 1024;
// Room for headers in front of a frame, as in the slots of a network card.
constexpr std::uint16_t headroom = io::FramePool::registered_headroom;

/// Return the bytes of a frame that rates and limits count: without the Ethernet header.
inline nagi::Bytes ip_bytes(std::size_t frame_bytes) {
  constexpr std::size_t ethernet_header = 14;
  return {frame_bytes - std::min(frame_bytes, ethernet_header)};
}

/// A frame that has left the switch. The caller must give back its slot.
struct Departure {
  std::size_t port = 0;
  io::Frame frame;
  Instant at;           // time at which its last bit was sent
  nagi::Bytes counted;  // bytes that count for the rate of the port: with overhead
  // whether its transmission began at the end of the previous one, so that the port was backlogged
  bool follows = false;
};

/// A dropped packet.
struct Drop {
  enum class Side { in, out };

  std::size_t port = 0;  // side in: port of its arrival; side out: port of its intended departure
  Side side = Side::in;
  Instant at;
  std::string_view cause;  // see logs.hpp
  const Headers& headers;  // the packet's headers at its arrival
};

/// Counts of packets that arrived at a port.
struct InputCounters {
  std::uint64_t received = 0;
  nagi::Bytes received_bytes;
  std::uint64_t dropped_by_program = 0;  // dropped in ingress, before a queue
  std::uint64_t no_such_port = 0;        // dropped because their output port is not configured
};

/// A packet that left by the controller's port.
struct PacketIn {
  std::vector<std::uint8_t> bytes;
  Instant at;
};

class Switch {
 public:
  /// Make a switch. `dropped` is called for every dropped packet; it may be empty.
  Switch(const SwitchConfig& config, Program program, io::FramePool& pool,
         std::function<void(const Drop&)> dropped);
  Switch(const Switch&) = delete;
  Switch& operator=(const Switch&) = delete;
  /// Release the slots of the frames in the switch.
  ~Switch();

  /// Process a frame that arrives at a port. The switch takes over the frame's slot. `at` must not
  /// be before now().
  void arrive(std::size_t port, const io::Frame& frame, Instant at);
  /// Copy a frame to a slot, and process it as an arrival at now(). The frame must fit a slot.
  void arrive(std::size_t port, const std::vector<std::uint8_t>& bytes);
  /// Process a frame that the controller sends into its port now. Throws InputError if there is no
  /// such port, or if the frame is too long.
  void arrive_from_controller(const std::vector<std::uint8_t>& bytes);
  /// Return the packets for the controller since the last call.
  [[nodiscard]] std::vector<PacketIn> take_packets_in() { return std::exchange(packets_in_, {}); }
  /// Return the number of packets for the controller that were lost because too many were stored.
  [[nodiscard]] std::uint64_t packets_in_lost() const { return packets_in_lost_; }
  /// Replace the program, and delete the state of the old one. Packets that wait in queues are
  /// still processed by the old program.
  void replace(Program program);
  /// Return how often the program was replaced.
  [[nodiscard]] std::uint64_t replaced() const { return replaced_; }

  /// Process all events up to and including `to`, which must not be before now().
  void advance(Instant to);
  [[nodiscard]] Instant now() const { return now_; }
  [[nodiscard]] std::uint64_t now_us() const {
    return static_cast<std::uint64_t>(now_.time_since_epoch().count()) / 1000;
  }
  /// Return the earliest end of a transmission in progress, or nothing if no port is sending.
  [[nodiscard]] std::optional<Instant> next_departure() const;
  /// Return the departures in the order of their times. The caller must give back their slots and
  /// clear the vector.
  [[nodiscard]] std::vector<Departure>& departures() { return departures_; }

  /// Change the rates and depths of a port from now() on: see OutputPort::change.
  void change(std::size_t port, const QueueConfig& queue);
  /// Call `sample` with the time every `interval`, after all earlier events have been processed.
  void sample_every(Duration interval, std::function<void(Instant)> sample);

  /// Return the number of ports, except the controller's port.
  [[nodiscard]] std::size_t ports() const { return configured_; }
  /// Return whether there is a controller's port. If so, its index is ports().
  [[nodiscard]] bool has_cpu_port() const { return ports_.size() > configured_; }
  /// Return the index of the port with a number, or nothing if it is not in the configuration.
  [[nodiscard]] std::optional<std::size_t> port_index(Port number) const;
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
  /// Return the statistics of a port's queues since the last call.
  QueueStatistics::Stretch take_depth(std::size_t port) {
    return ports_[port].out.take_depth(now_);
  }
  [[nodiscard]] bool is_sending(std::size_t port) const { return ports_[port].sending.has_value(); }
  /// Return the number of packets dropped because a program made too many copies at one time.
  [[nodiscard]] std::uint64_t endless_copies() const { return endless_copies_; }
  [[nodiscard]] Machine& machine() { return *machine_; }
  [[nodiscard]] const Machine& machine() const { return *machine_; }
  /// Return the counters of the present program and of all replaced programs together.
  [[nodiscard]] Counters counters() const;
  /// Return the digests since the last call, in order.
  [[nodiscard]] std::vector<Digest> take_digests();

 private:
  /// The arrival from which a packet, or the original of a copy, comes.
  struct Origin {
    std::size_t port = 0;
    HeaderStore::Slot headers = HeaderStore::none;
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
  /// Set now(), and call `sample_` for each sample that is due.
  void move_to(Instant at);
  /// Queue the packets that the machine has returned in `queued_`.
  void queue_returned_packets();
  void offer(Queued& queued, const Origin& origin);
  /// Take packets from the queues of a port while the port is free.
  void serve(std::size_t index);
  void run_egress(std::size_t index, OutputPort<Item>::Taken& taken);
  /// Run egress for a packet to a port that is not in the configuration.
  void run_egress_without_port(Queued& queued, const Origin& origin);
  void hand_to_controller(const io::Frame& frame);
  std::optional<io::Frame> egress(PacketPtr packet, Port number, const QueueTimes& times,
                                  const Origin& origin);
  /// Return the machine whose ingress processed a packet.
  [[nodiscard]] Machine& machine_of(const Packet& packet);
  /// Delete replaced machines of which no packet waits any more.
  void remove_idle_machines();
  void take_digests_of(Machine& machine);
  /// Report the packets that a machine dropped in its last ingress() or egress(). Return their
  /// number.
  std::size_t report_drops(const Machine& machine, std::size_t port, Drop::Side side,
                           const Origin& origin);
  void report_drop(std::size_t port, Drop::Side side, std::string_view cause, const Origin& origin);

  std::function<void(const Drop&)> dropped_;
  io::FramePool& pool_;
  std::uint64_t seed_;
  std::unique_ptr<Machine> machine_;
  std::vector<std::unique_ptr<Machine>> replaced_machines_;  // machines with packets in queues
  Counters removed_counters_;    // counters of machines that were removed
  std::vector<Digest> digests_;  // digests fetched from machines
  std::uint64_t replaced_ = 0;
  HeaderStore headers_;
  std::vector<SwitchPort> ports_;
  std::size_t configured_;
  std::vector<PacketIn> packets_in_;
  std::uint64_t packets_in_lost_ = 0;
  std::array<std::int16_t, max_ports + 1>
      port_indexes_{};  // index by port number; -1: no such port
  Instant now_{};
  std::vector<Departure> departures_;
  std::vector<Queued> queued_;  // packets that the machine has returned and that wait to be queued,
  std::vector<Origin> origins_;  // and their origins
  std::uint64_t endless_copies_ = 0;
  std::function<void(Instant)> sample_;
  Duration interval_{};
  Instant next_sample_ = Instant::max();
};

}  // namespace nagi::p4
