// SPDX-License-Identifier: Apache-2.0
//
// A running P4 program: packets are parsed, pass tables and actions, wait in queues that the caller
// keeps, pass the egress tables and are returned. The machine has neither I/O nor a clock: the
// caller passes the time.
//
// The program is the JSON that p4c (p4c-bm2-ss) emits for the architecture v1model. Between the
// pipelines, packets are treated as in bmv2's simple_switch (docs/simple_switch.md of
// p4lang/behavioral-model).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "io/frame_pool.hpp"
#include "io/port.hpp"

namespace nagi::p4 {

using Port = std::uint32_t;  // 9 bits in v1model

struct Compiled;
class Control;
class State;
class Machine;

/// A key field of a table, or a parameter of an action: name and width in bits.
struct Described {
  std::string name;
  std::uint32_t bits = 0;
  std::string match;  // only for key fields: "exact", "lpm", "ternary", "range" or "valid"
};

struct DescribedAction {
  std::string name;
  std::vector<Described> parameters;
};

struct DescribedTable {
  std::string name;
  std::vector<Described> key;
  std::vector<std::string> actions;
  std::uint64_t size = 0;     // maximum number of entries
  std::string profile;        // action profile of the entries, or empty
  bool with_groups = false;   // whether the profile selects among the members of a group
  bool is_constant = false;   // whether only the program sets its entries
  bool is_hidden = false;     // made by the compiler: entries cannot be added
  bool has_counters = false;  // whether each entry has a packet and byte counter
  bool has_timeouts = false;  // whether entries may have an idle timeout
  std::string meter;          // direct meter of the entries, or empty
};

/// A register, counter or meter array, a value set or an action profile.
struct DescribedArray {
  std::string name;
  std::uint64_t size = 0;
  std::uint32_t bits = 0;     // bits of one cell of a register, or of one value of a value set
  bool is_direct = false;     // one cell per entry of `table`
  std::string table;          // only for direct arrays
  bool counts_bytes = false;  // for meters: rates are bytes, not packets, per microsecond
};

/// A digest, which packets send to the controller: its name and fields.
struct DescribedDigest {
  std::uint32_t list_id = 0;
  std::string name;
  std::vector<Described> fields;
};

struct Description {
  std::vector<DescribedTable> tables;
  std::vector<DescribedAction> actions;
  std::vector<DescribedArray> registers, counters, meters, value_sets, profiles;
  std::vector<DescribedDigest> digests;
  // constructs that behave differently than their author may expect
  std::vector<std::string> notices;
  std::size_t headers = 0, parser_states = 0;
};

/// A program that was checked and compiled.
class Program {
 public:
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;
  ~Program();
  /// Return a description of the program for people and for clients that write entries.
  [[nodiscard]] Description describe() const;

 private:
  friend class Machine;
  friend Program load_program(const std::string& text, const std::string& file);
  explicit Program(std::unique_ptr<Compiled> compiled);
  std::unique_ptr<Compiled> compiled_;
};

/// Load the compiler's JSON. `file` is the name in error messages. Throws InputError with the
/// position in the JSON; for a construct that is not supported, with its name and its line in the
/// P4 source.
Program load_program(const std::string& text, const std::string& file);

struct Settings {
  std::uint64_t seed = 0;
  Port drop_port = 511;
  /// How often a packet may be resubmitted or recirculated.
  std::uint32_t rounds = 1024;
  /// Maximum number of digests until take_digests(); further ones are lost and counted.
  std::size_t digests = 65536;
  /// Receives the messages of log_msg() and of a failed assert() or assume() (whose packet is
  /// dropped).
  std::function<void(const std::string&)> log;
};

/// A packet between ingress and egress: its frame and all its fields. It returns to its machine
/// when its owner releases it, so it must not outlive the machine.
class Packet {
 public:
  Packet(const Packet&) = delete;
  Packet& operator=(const Packet&) = delete;
  /// Return the length of the frame if the packet were sent now.
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] Port ingress_port() const { return ingress_port_; }
  /// Return the time passed to ingress(); clones and copies have that of the original.
  [[nodiscard]] std::uint64_t received_us() const { return received_us_; }

 private:
  friend class Machine;
  friend class State;
  friend struct PacketReturn;
  explicit Packet(State& home) : home_(&home) {}

  State* home_;
  std::unique_ptr<std::uint64_t[]> words_;  // all fields: see compiled/fields.hpp
  io::Frame frame_{};
  std::uint32_t parsed_ = 0;              // bytes that the parser has passed
  std::uint32_t truncated_ = 0xffffffff;  // maximum length when it is sent
  Port ingress_port_ = 0;
  std::uint32_t arrived_ = 0;  // length at arrival, which counters and meters count
  std::uint32_t length_ = 0;   // standard_metadata.packet_length
  // the field list that is kept at recirculation; 0: no recirculation
  std::uint64_t recirculate_ = 0;
  std::uint32_t rounds_ = 0;  // resubmissions and recirculations so far
  std::uint64_t received_us_ = 0;
};

struct PacketReturn {
  void operator()(Packet* packet) const noexcept;
};
using PacketPtr = std::unique_ptr<Packet, PacketReturn>;

/// A packet after ingress, in the order in which bmv2 would queue it.
struct Queued {
  Port port = 0;
  std::uint32_t priority = 0;  // intrinsic_metadata.priority, 0 to 7
  PacketPtr packet;
};

/// The queueing of a packet: standard_metadata's fields of the same names.
struct QueueTimes {
  std::uint64_t enqueued_us = 0;
  std::uint32_t depth_at_enqueue = 0;
  std::uint32_t delta_us = 0;
  std::uint32_t depth_at_dequeue = 0;
  std::uint32_t queue_id = 0;
};

/// One message of digest(): the fields' values, each in as few bytes as its width needs, big
/// endian.
struct Digest {
  std::string name;
  std::uint64_t at_us = 0;  // the time passed to ingress() or egress()
  std::vector<std::vector<std::uint8_t>> values;
};

/// Why a packet was dropped.
enum class DropCause : std::uint8_t {
  ingress,       // egress_spec was the drop port after ingress
  malformed,     // like `ingress`, after a parser error
  checksum,      // like `ingress`, after a wrong checksum
  recirculated,  // like `ingress`, after recirculation: programs send themselves messages by clones
  no_group,      // multicast to a group that does not exist or is empty
  egress,        // egress_spec was the drop port after egress
  assertion,     // assert() or assume() failed, or a loop did not end
  rounds,        // resubmitted or recirculated more often than allowed
  too_long,      // became longer than a slot of the pool
};
constexpr std::size_t drop_causes = 9;

/// Packets by outcome. Every packet given to ingress() and every copy ends in exactly one of `sent`
/// and the drops, or is still in progress.
struct Counters {
  std::uint64_t received = 0;                        // packets passed to ingress()
  std::uint64_t copies = 0;                          // copies by clone and multicast
  std::uint64_t resubmitted = 0;                     // number of resubmissions
  std::uint64_t recirculated = 0;                    // number of recirculations
  std::uint64_t sent = 0;                            // packets returned by egress()
  std::array<std::uint64_t, drop_causes> dropped{};  // by DropCause
  std::uint64_t replicated = 0;       // originals of multicast, which are not forwarded themselves
  std::uint64_t discarded = 0;        // released by the owner of the queue
  std::uint64_t parser_errors = 0;    // not drops: the program reads parser_error
  std::uint64_t checksum_errors = 0;  // not drops
  // clones that were not made, as the session is not configured
  std::uint64_t clones_without_session = 0;
  std::uint64_t digests_lost = 0;
  std::uint64_t outside_array = 0;  // accesses outside a register, counter, meter or header stack

  [[nodiscard]] std::uint64_t dropped_for(DropCause cause) const {
    return dropped[static_cast<std::size_t>(cause)];
  }
  /// Return the number of packets that have ended, with whichever outcome.
  [[nodiscard]] std::uint64_t ended() const {
    return std::accumulate(dropped.begin(), dropped.end(), sent + replicated + discarded);
  }
  Counters& operator+=(const Counters& other);
};

class Machine {
 public:
  Machine(Program program, io::FramePool& pool, Settings settings);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  ~Machine();

  /// Parse a packet and run ingress, repeatedly if it is resubmitted. Append the packets to queue,
  /// copies included. The frame's slot becomes the machine's. `now_us` counts from the start of the
  /// switch.
  void ingress(Port port, io::Frame frame, std::uint64_t now_us, std::vector<Queued>& queued);

  /// Run egress and the deparser. Append to `queued` the clones made there and the result of
  /// ingress for a recirculated packet. Return the frame to send, whose slot becomes the caller's,
  /// or nothing if the packet was dropped or recirculated.
  std::optional<io::Frame> egress(PacketPtr packet, Port port, const QueueTimes& times,
                                  std::uint64_t now_us, std::vector<Queued>& queued);

  [[nodiscard]] Control& control();
  [[nodiscard]] Description describe() const;
  /// Return the compiler's JSON; name() returns its name in error messages.
  [[nodiscard]] const std::string& text() const;
  [[nodiscard]] const std::string& file() const;
  /// Return whether a packet between ingress and egress belongs to this machine.
  [[nodiscard]] bool owns(const Packet& packet) const { return packet.home_ == state_.get(); }
  /// Return whether no packet is between ingress and egress.
  [[nodiscard]] bool is_idle() const;
  [[nodiscard]] const Counters& counters() const;
  /// Return the causes of the drops in the last ingress() or egress(), copies included.
  [[nodiscard]] const std::vector<DropCause>& drops() const;
  /// Return the digests since the last call, in order.
  [[nodiscard]] std::vector<Digest> take_digests();

 private:
  std::unique_ptr<State> state_;
};

}  // namespace nagi::p4
