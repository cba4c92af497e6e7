// SPDX-License-Identifier: Apache-2.0
//
// A P4 program at work: packets go in, are parsed, meet tables and actions, wait in queues that are
// somebody else's, meet the egress tables and leave. No I/O and no clock: instants are passed in.
//
// The program is the JSON that p4c (p4c-bm2-ss) emits for the architecture v1model; what happens to
// a packet between the pipelines is what bmv2's simple_switch does (docs/simple_switch.md of
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

/// A key field of a table, or a parameter of an action: a name and its width in bits.
struct Described {
  std::string name;
  std::uint32_t bits = 0;
  std::string match;  // of a key field: "exact", "lpm", "ternary", "range" or "valid"
};

struct DescribedAction {
  std::string name;
  std::vector<Described> parameters;
};

struct DescribedTable {
  std::string name;
  std::vector<Described> key;
  std::vector<std::string> actions;
  std::uint64_t size = 0;     // entries it can hold
  std::string profile;        // the action profile its entries refer to, if they do
  bool with_groups = false;   // the profile selects among the members of a group
  bool is_constant = false;   // its entries are the program's own
  bool is_hidden = false;     // made by the compiler: nothing can be added
  bool has_counters = false;  // a packet and byte counter an entry
  bool has_timeouts = false;  // its entries may have an idle timeout
  std::string meter;          // the direct meter of its entries, if there is one
};

/// A register, counter or meter array, a value set or an action profile.
struct DescribedArray {
  std::string name;
  std::uint64_t size = 0;
  std::uint32_t bits = 0;     // of one cell of a register, or one value of a value set
  bool is_direct = false;     // one cell an entry of `table`
  std::string table;          // of a direct one
  bool counts_bytes = false;  // of a meter: its rates are bytes, not packets, per microsecond
};

/// What packets tell the controller: the digests' name and fields.
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
  std::vector<std::string> notices;  // what runs otherwise than its author may think
  std::size_t headers = 0, parser_states = 0;
};

/// A program that was read and found good, compiled into what runs fast.
class Program {
 public:
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;
  ~Program();
  /// What is in it, for people and for whoever writes entries.
  [[nodiscard]] Description describe() const;

 private:
  friend class Machine;
  friend Program load_program(const std::string& text, const std::string& file);
  explicit Program(std::unique_ptr<Compiled> compiled);
  std::unique_ptr<Compiled> compiled_;
};

/// Reads the compiler's JSON. `file` is the name that errors give. Throws InputError with the place
/// in the JSON; for what is not supported, with the construct's name and its line in the P4 source.
Program load_program(const std::string& text, const std::string& file);

struct Settings {
  std::uint64_t seed = 0;
  Port drop_port = 511;
  /// How often one packet may be resubmitted or recirculated.
  std::uint32_t rounds = 1024;
  /// Digests kept until take_digests(); what comes when they are full is lost, and counted.
  std::size_t digests = 65536;
  /// Hears what log_msg() says, and which assert() or assume() failed (the packet is dropped).
  std::function<void(const std::string&)> log;
};

/// A packet between ingress and egress: its frame and all its fields. Goes back to its machine when
/// its owner lets go of it, so it must not outlive the machine.
class Packet {
 public:
  Packet(const Packet&) = delete;
  Packet& operator=(const Packet&) = delete;
  /// Bytes of the frame it would be, were it sent as it is now.
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] Port ingress_port() const { return ingress_port_; }
  /// The instant that ingress() was given; that of the original for clones and copies.
  [[nodiscard]] std::uint64_t received_us() const { return received_us_; }

 private:
  friend class Machine;
  friend class State;
  friend struct PacketReturn;
  explicit Packet(State& home) : home_(&home) {}

  State* home_;
  std::unique_ptr<std::uint64_t[]> words_;  // all fields: see compiled/fields.hpp
  io::Frame frame_{};
  std::uint32_t parsed_ = 0;              // bytes at the front that the parser has passed
  std::uint32_t truncated_ = 0xffffffff;  // the greatest length it may leave with
  Port ingress_port_ = 0;
  std::uint32_t arrived_ = 0;      // bytes it came with: what counters and meters count
  std::uint32_t length_ = 0;       // standard_metadata.packet_length
  std::uint64_t recirculate_ = 0;  // the fields it keeps when it goes round; 0: it does not
  std::uint32_t rounds_ = 0;       // resubmissions and recirculations so far
  std::uint64_t received_us_ = 0;
};

struct PacketReturn {
  void operator()(Packet* packet) const noexcept;
};
using PacketPtr = std::unique_ptr<Packet, PacketReturn>;

/// What leaves ingress, in the order in which bmv2 would put it in queues.
struct Queued {
  Port port = 0;
  std::uint32_t priority = 0;  // intrinsic_metadata.priority, 0 to 7
  PacketPtr packet;
};

/// How it was in the queue: standard_metadata's fields of the same names.
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
  std::uint64_t at_us = 0;  // the instant ingress() or egress() was given
  std::vector<std::vector<std::uint8_t>> values;
};

/// Why a packet of a program goes no further.
enum class DropCause : std::uint8_t {
  ingress,       // egress_spec was the drop port after ingress
  malformed,     // the same, of a packet with a parser error
  checksum,      // the same, of one with a wrong checksum
  recirculated,  // the same, of one that had been recirculated: as programs use clones to tell
                 // things
  no_group,      // multicast to a group that is not there, or is empty
  egress,        // egress_spec was the drop port after egress
  assertion,     // assert() or assume() failed, or a loop did not end
  rounds,        // resubmitted or recirculated more often than allowed
  too_long,      // would have become longer than a slot of the pool
};
constexpr std::size_t drop_causes = 9;

/// Packets by what became of them. Every packet given to ingress() and every copy made ends in
/// exactly one of: sent, or one of the drops; or it is still somewhere in between.
struct Counters {
  std::uint64_t received = 0;                        // given to ingress()
  std::uint64_t copies = 0;                          // made by clone and multicast
  std::uint64_t resubmitted = 0;                     // times
  std::uint64_t recirculated = 0;                    // times
  std::uint64_t sent = 0;                            // returned by egress()
  std::array<std::uint64_t, drop_causes> dropped{};  // by DropCause
  std::uint64_t replicated = 0;                      // originals of multicast, which go no further
  std::uint64_t discarded = 0;                       // given back by whoever kept the queue
  std::uint64_t parser_errors = 0;                   // not drops: the program sees parser_error
  std::uint64_t checksum_errors = 0;                 // not drops either
  std::uint64_t clones_without_session = 0;          // not made, as the session is not configured
  std::uint64_t digests_lost = 0;
  std::uint64_t outside_array = 0;  // accesses outside a register, counter, meter or header stack

  [[nodiscard]] std::uint64_t dropped_for(DropCause cause) const {
    return dropped[static_cast<std::size_t>(cause)];
  }
  /// Packets that have gone, one way or another.
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

  /// Parses a packet and runs ingress for it, and again where it is resubmitted. Appends what is to
  /// be queued, copies included. Takes the frame's slot. `now_us`: since the switch was started.
  void ingress(Port port, io::Frame frame, std::uint64_t now_us, std::vector<Queued>& queued);

  /// Runs egress and the deparser. Clones made there, and what is left of a recirculated packet
  /// after ingress, are appended to `queued`. Returns the frame to send, whose slot is the caller's
  /// now; or nothing, if it was dropped or recirculated.
  std::optional<io::Frame> egress(PacketPtr packet, Port port, const QueueTimes& times,
                                  std::uint64_t now_us, std::vector<Queued>& queued);

  [[nodiscard]] Control& control();
  [[nodiscard]] Description describe() const;
  /// The compiler's JSON, and its name in errors.
  [[nodiscard]] const std::string& text() const;
  [[nodiscard]] const std::string& file() const;
  /// Whether a packet between ingress and egress is this machine's.
  [[nodiscard]] bool owns(const Packet& packet) const { return packet.home_ == state_.get(); }
  /// Whether no packet is between ingress and egress.
  [[nodiscard]] bool is_idle() const;
  [[nodiscard]] const Counters& counters() const;
  /// Why packets were dropped by the last ingress() or egress(), copies included.
  [[nodiscard]] const std::vector<DropCause>& drops() const;
  /// The digests since the last call, in order.
  [[nodiscard]] std::vector<Digest> take_digests();

 private:
  std::unique_ptr<State> state_;
};

}  // namespace nagi::p4
