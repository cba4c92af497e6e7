// SPDX-License-Identifier: Apache-2.0
//
// A whole switch in event time: the machine that runs the program, and the traffic manager of its
// ports. Frames and times go in and come out; there is no clock and no network. nagi-switch drives
// it by the machine's clock, replay by the timestamps of captures.
//
// The controller's port, if there is one, has neither interface nor queue: its departures are kept
// until the controller fetches them.
//
// At equal times, ends of transmission come before arrivals, and ports are processed in the order
// of the configuration. This file names ports by their index in the configuration.
//
// As in bmv2, egress runs for packets to any port, even one that is not in the configuration:
// programs send clones that they recirculate to such a port. These packets do not wait, and only
// packets that would be sent are dropped.
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

// The slots of frames that come from no interface have room for jumbo frames and headers that
// programs add; in front of a frame they have the same room for headers as those of a network card.
constexpr std::size_t slot_bytes = 16 * 1024;
constexpr std::uint16_t headroom = io::FramePool::registered_headroom;

/// Return the bytes of a frame that rates and limits count: without the Ethernet header.
inline nagi::Bytes ip_bytes(std::size_t frame_bytes) {
  constexpr std::size_t ethernet_header = 14;
  return {frame_bytes - std::min(frame_bytes, ethernet_header)};
}

/// A frame that has left. Its slot belongs to the caller.
struct Departure {
  std::size_t port = 0;
  io::Frame frame;
  Instant at;           // time at which its last bit was sent
  nagi::Bytes counted;  // bytes that the port's server counts
  // its transmission began at the end of the previous one: the port was backlogged
  bool follows = false;
};

/// A dropped packet.
struct Drop {
  enum class Side { in, out };

  std::size_t port = 0;  // port of its arrival, or of its intended departure
  Side side = Side::in;
  Instant at;
  std::string_view cause;
  const Headers& headers;  // headers at its arrival
};

/// Counts of packets that arrived at a port.
struct InputCounters {
  std::uint64_t received = 0;
  nagi::Bytes received_bytes;
  std::uint64_t dropped_by_program = 0;  // dropped before a queue
  std::uint64_t no_such_port = 0;        // left egress for a port outside the configuration
};

/// A packet for the controller.
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

  /// Process a frame that arrives at a port. The frame's slot becomes the switch's. `at` must not
  /// be before now().
  void arrive(std::size_t port, const io::Frame& frame, Instant at);
  /// Process a frame without a slot that arrives now. It must fit a slot.
  void arrive(std::size_t port, const std::vector<std::uint8_t>& bytes);
  /// Process a frame that the controller sends into its port now. Throws InputError if there is no
  /// such port, or if the frame is too long.
  void arrive_from_controller(const std::vector<std::uint8_t>& bytes);
  /// Return the packets for the controller since the last call.
  [[nodiscard]] std::vector<PacketIn> take_packets_in() { return std::exchange(packets_in_, {}); }
  /// Return the number of packets for the controller that were lost for lack of room.
  [[nodiscard]] std::uint64_t packets_in_lost() const { return packets_in_lost_; }
  /// Replace the program and all its state. Packets in queues leave by the program by which they
  /// entered.
  void replace(Program program);
  [[nodiscard]] std::uint64_t replaced() const { return replaced_; }

  /// Process all events up to and including `to`, which must not be before now().
  void advance(Instant to);
  [[nodiscard]] Instant now() const { return now_; }
  [[nodiscard]] std::uint64_t now_us() const {
    return static_cast<std::uint64_t>(now_.time_since_epoch().count()) / 1000;
  }
  /// Return the time of the next known departure, or nothing if the switch holds no frame.
  [[nodiscard]] std::optional<Instant> next_departure() const;
  /// Return the departures in the order of their times. The caller must clear them.
  [[nodiscard]] std::vector<Departure>& departures() { return departures_; }

  /// Change the rates and limits of a port from now() on: see OutputPort::change.
  void change(std::size_t port, const QueueConfig& queue);
  /// Call `sample` every `interval` with the time, once all earlier events have been processed.
  void sample_every(Duration interval, std::function<void(Instant)> sample);

  /// Return the number of ports without the controller's.
  [[nodiscard]] std::size_t ports() const { return configured_; }
  /// Return whether there is a controller's port. Its index follows those of the others.
  [[nodiscard]] bool has_cpu_port() const { return ports_.size() > configured_; }
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
  QueueStatistics::Stretch take_depth(std::size_t port) {
    return ports_[port].out.take_depth(now_);
  }
  [[nodiscard]] bool is_sending(std::size_t port) const { return ports_[port].sending.has_value(); }
  /// Return the number of packets dropped because egress programs made too many of them at one
  /// time.
  [[nodiscard]] std::uint64_t endless_copies() const { return endless_copies_; }
  [[nodiscard]] Machine& machine() { return *machine_; }
  [[nodiscard]] const Machine& machine() const { return *machine_; }
  /// Return the counters of all programs so far.
  [[nodiscard]] Counters counters() const;
  /// Return the digests since the last call, in order.
  [[nodiscard]] std::vector<Digest> take_digests();

 private:
  /// The origin of a packet.
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
  void move_to(Instant at);
  void settle();
  void offer(Queued& queued, const Origin& origin);
  void serve(std::size_t index);
  void run_egress(std::size_t index, OutputPort<Item>::Taken& taken);
  void run_egress_of_no_port(Queued& queued, const Origin& origin);
  void hand_to_controller(const io::Frame& frame);
  std::optional<io::Frame> egress(PacketPtr packet, Port number, const QueueTimes& times,
                                  const Origin& origin);
  /// Return the machine of the program by which a packet entered.
  [[nodiscard]] Machine& machine_of(const Packet& packet);
  void forget_replaced();
  void take_digests_of(Machine& machine);
  /// Report the packets that a program dropped in its last call. Return their number.
  std::size_t report_drops(const Machine& machine, std::size_t port, Drop::Side side,
                           const Origin& origin);
  void report_drop(std::size_t port, Drop::Side side, std::string_view cause, const Origin& origin);

  std::function<void(const Drop&)> dropped_;
  io::FramePool& pool_;
  std::uint64_t seed_;
  std::unique_ptr<Machine> machine_;
  std::vector<std::unique_ptr<Machine>> replaced_machines_;  // machines with packets in queues
  Counters earlier_;             // counters of machines that were removed
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
