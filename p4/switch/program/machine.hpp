// SPDX-License-Identifier: Apache-2.0
//
// A running P4 program. ingress() parses a packet, applies the ingress tables, and returns packets
// to queue. The caller has the queues. egress() applies the egress tables to a packet from a queue,
// and returns the frame to send. The machine has neither I/O nor a clock: the caller passes the
// time.
//
// The program is the JSON that p4c (p4c-bm2-ss) makes for the architecture v1model. Clones,
// multicast, resubmission and so on work as in bmv2's simple_switch (docs/simple_switch.md of
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
  bool counts_bytes = false;  // for meters: whether rates count bytes instead of packets
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
  // warnings: constructs of the program that have no effect
  std::vector<std::string> notices;
  std::size_t headers = 0, parser_states = 0;
};

/// A program that was checked and compiled.
class Program {
 public:
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;
  ~Program();
  /// Return a description of the program for people, and for clients that write entries.
  [[nodiscard]] Description describe() const;

 private:
  friend class Machine;
  friend Program load_program(const std::string& text, const std::string& file);
  explicit Program(std::unique_ptr<Compiled> compiled);
  std::unique_ptr<Compiled> compiled_;
};

/// Load the compiler's JSON. `file` is the name of the program in error messages. Throws InputError
/// if the JSON is wrong, with the position in the JSON, or if a construct is not supported, with
/// the name of the construct and its line in the P4 source.
Program load_program(const std::string& text, const std::string& file);

struct Settings {
  std::uint64_t seed = 0;
  Port drop_port = 511;
  /// Maximum number of resubmissions and recirculations of a packet.
  std::uint32_t rounds = 1024;
  /// Maximum number of digests between calls of take_digests(). More digests are lost and counted.
  std::size_t digests = 65536;
  /// A function that receives the messages of log_msg(), and of assert() and assume() that fail;
  /// may be empty.
  std::function<void(const std::string&)> log;
};

/// A packet between ingress and egress, with its frame and all its fields. It must not outlive its
/// machine, because the machine reuses its memory after the owner has released it.
class Packet {
 public:
  Packet(const Packet&) = delete;
  Packet& operator=(const Packet&) = delete;
  /// Return the length that the frame would have if the packet were sent now.
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] Port ingress_port() const { return ingress_port_; }
  /// Return the time that was passed to ingress(). Clones and copies have the time of the original.
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
  // number of the field list to retain at recirculation; 0: no recirculation
  std::uint64_t recirculate_ = 0;
  std::uint32_t rounds_ = 0;  // resubmissions and recirculations so far
  std::uint64_t received_us_ = 0;
};

/// The deleter of PacketPtr: gives a packet back to its machine, which counts it as discarded.
struct PacketReturn {
  void operator()(Packet* packet) const noexcept;
};
using PacketPtr = std::unique_ptr<Packet, PacketReturn>;

/// A packet after ingress that the caller must queue.
struct Queued {
  Port port = 0;
  std::uint32_t priority = 0;  // intrinsic_metadata.priority, 0 to 7
  PacketPtr packet;
};

/// The values of standard_metadata's queueing fields for a packet (enq_timestamp and so on).
struct QueueTimes {
  std::uint64_t enqueued_us = 0;
  std::uint32_t depth_at_enqueue = 0;
  std::uint32_t delta_us = 0;
  std::uint32_t depth_at_dequeue = 0;
  std::uint32_t queue_id = 0;
};

/// One digest. Each value is big endian, in as few bytes as the width of its field needs.
struct Digest {
  std::string name;
  std::uint64_t at_us = 0;  // the time passed to ingress() or egress()
  std::vector<std::vector<std::uint8_t>> values;
};

/// Why a packet was dropped.
enum class DropCause : std::uint8_t {
  ingress,       // the program dropped it in ingress: egress_spec was the drop port
  malformed,     // like `ingress`, but after a parser error
  checksum,      // like `ingress`, but after a wrong checksum
  recirculated,  // like `ingress`, but after recirculation, such as clones that carry digests
  no_group,      // multicast to a group that does not exist or is empty
  egress,        // the program dropped it in egress: egress_spec was the drop port
  assertion,     // assert() or assume() failed, or a loop did not end
  rounds,        // resubmitted or recirculated more often than allowed
  too_long,      // became longer than a slot of the pool
};
constexpr std::size_t drop_causes = 9;

/// Packets by outcome. Every packet that was passed to ingress(), and every copy, counts in exactly
/// one of `sent`, `dropped`, `replicated` and `discarded`, or is still between ingress and egress.
struct Counters {
  std::uint64_t received = 0;                        // packets passed to ingress()
  std::uint64_t copies = 0;                          // copies by clone and multicast
  std::uint64_t resubmitted = 0;                     // number of resubmissions
  std::uint64_t recirculated = 0;                    // number of recirculations
  std::uint64_t sent = 0;                            // packets returned by egress()
  std::array<std::uint64_t, drop_causes> dropped{};  // by DropCause
  std::uint64_t replicated = 0;       // originals of multicast, which are not forwarded themselves
  std::uint64_t discarded = 0;        // released by the caller before egress, such as queue drops
  std::uint64_t parser_errors = 0;    // these packets are not dropped: programs read parser_error
  std::uint64_t checksum_errors = 0;  // these packets are not dropped
  // clones that were not made, because the session is not configured
  std::uint64_t clones_without_session = 0;
  std::uint64_t digests_lost = 0;
  std::uint64_t outside_array = 0;  // accesses outside a register, counter, meter or header stack

  [[nodiscard]] std::uint64_t dropped_for(DropCause cause) const {
    return dropped[static_cast<std::size_t>(cause)];
  }
  /// Return the number of packets with an outcome.
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

  /// Parse a packet and run ingress, repeatedly if the packet is resubmitted. Append the packets to
  /// queue, copies included, to `queued`. The machine takes over the slot of `frame`. `now_us`
  /// counts from the start of the switch.
  void ingress(Port port, io::Frame frame, std::uint64_t now_us, std::vector<Queued>& queued);

  /// Run egress and the deparser for a packet from a queue. If the packet is recirculated, also run
  /// ingress. Append the packets to queue (clones, the recirculated packet) to `queued`. Return the
  /// frame to send, whose slot the caller takes over, or nothing if the packet was dropped or
  /// recirculated.
  std::optional<io::Frame> egress(PacketPtr packet, Port port, const QueueTimes& times,
                                  std::uint64_t now_us, std::vector<Queued>& queued);

  [[nodiscard]] Control& control();
  [[nodiscard]] Description describe() const;
  /// Return the compiler's JSON.
  [[nodiscard]] const std::string& text() const;
  /// Return the name of the program in error messages.
  [[nodiscard]] const std::string& file() const;
  /// Return whether a packet between ingress and egress belongs to this machine.
  [[nodiscard]] bool owns(const Packet& packet) const { return packet.home_ == state_.get(); }
  /// Return whether no packet is between ingress and egress.
  [[nodiscard]] bool is_idle() const;
  [[nodiscard]] const Counters& counters() const;
  /// Return one cause for each packet, or copy, that the last ingress() or egress() dropped.
  [[nodiscard]] const std::vector<DropCause>& drops() const;
  /// Return the digests since the last call, in order.
  [[nodiscard]] std::vector<Digest> take_digests();

 private:
  std::unique_ptr<State> state_;
};

}  // namespace nagi::p4
