// SPDX-License-Identifier: Apache-2.0
//
// The state of a machine, and the processing of packets. parse.cpp, pipeline.cpp and deparse.cpp
// process a packet; machine.cpp passes packets between them. control.cpp, control_*.cpp and
// read_back.cpp change and read tables and arrays for a controller.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "model/random.hpp"
#include "program/compiled.hpp"
#include "program/control.hpp"
#include "program/evaluate.hpp"
#include "program/machine.hpp"
#include "program/meter.hpp"
#include "program/staged.hpp"
#include "program/table_state.hpp"

namespace nagi::p4 {

/// Members and groups of an action profile. Their numbers are the indices.
struct ProfileState {
  struct Member {
    bool used = false;
    Index choice = none;  // position in Profile::actions
    Index action = none;  // index in Compiled::actions
    std::vector<std::uint64_t> data;
    std::size_t references = 0;  // entries and groups that refer to it
  };
  struct Group {
    bool used = false;
    std::vector<std::uint32_t> members;  // in ascending order
    std::size_t references = 0;
  };
  std::vector<Member> members;
  std::vector<Group> groups;
};

/// What the actions of a pipeline have requested for its end: clones, resubmission, digests and so
/// on. The lists are numbers of field lists; 0 stands for no request.
struct Requests {
  std::uint32_t clone_session = none;  // `none`: no clone
  std::uint64_t clone_list = 0;
  std::uint64_t resubmit_list = 0;
  std::uint64_t recirculate_list = 0;
  std::uint64_t digest = 0;
  bool exit = false;             // the rest of the pipeline is skipped
  bool failed = false;           // an assertion failed, or a loop did not end
  std::uint32_t jumps_back = 0;  // number of backward jumps so far
};

/// Values of standard_metadata.instance_type, as in simple_switch.
enum class Instance : std::uint8_t {
  normal = 0,
  ingress_clone = 1,
  egress_clone = 2,
  recirculated = 4,
  replication = 5,
  resubmitted = 6
};

class State {
 public:
  State(std::unique_ptr<Compiled> program, io::FramePool& frames, Settings settings);
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void ingress(Port port, io::Frame frame, std::uint64_t now_us, std::vector<Queued>& queued);
  std::optional<io::Frame> egress(PacketPtr packet, Port port, const QueueTimes& times,
                                  std::uint64_t now_us, std::vector<Queued>& queued);
  std::vector<Digest> take_digests();
  /// Make a packet available for reuse, and give back the slot of its frame.
  void take_back(Packet* packet) noexcept;
  [[nodiscard]] std::size_t size_of(const Packet& packet) const;
  /// Return whether no packet is in use.
  [[nodiscard]] bool is_idle() const { return idle_.size() == all_packets_.size(); }

  std::unique_ptr<Compiled> program;
  io::FramePool& frames;
  Settings settings;
  Counters counts;
  std::vector<DropCause> drops;  // see Machine::drops()
  // By index of the table, profile, register, counter or meter in `program`.
  std::vector<Staged<TableState>> tables;
  std::vector<Staged<ProfileState>> profiles;
  std::vector<Staged<std::vector<std::uint64_t>>> registers;
  std::vector<Staged<std::vector<Count>>> counters;
  std::vector<Staged<std::vector<MeterCell>>> meters;
  Staged<std::map<std::uint32_t, Mirror>> mirrors;
  Staged<std::map<std::uint32_t, std::vector<Copies>>> groups;
  std::vector<Staged<std::vector<Bytes>>> value_sets;
  /// By use of a value set in a parser state: the values in the layout of the state's key.
  std::vector<Staged<std::vector<std::uint64_t>>> value_set_keys;
  Control control{*this};
  Transaction transaction;

 private:
  /// Return an unused packet without a frame. Its fields are not initialized.
  PacketPtr take_packet();
  /// Return a copy of a packet with its frame. Without `with_fields`, its fields are as before
  /// parsing.
  PacketPtr copy(const Packet& packet, bool with_fields);
  /// Run ingress. `cause` is the cause to record if the program drops the packet without a parser
  /// error or wrong checksum.
  void run_ingress(PacketPtr packet, std::uint64_t now_us, std::vector<Queued>& queued,
                   DropCause cause);
  /// Append the copies for a multicast group to `queued`. Return their number, 0 without a group.
  std::size_t multicast(Packet& packet, std::uint32_t group, std::vector<Queued>& queued);
  void clone(const Packet& packet, const Requests& requests, bool at_ingress, std::uint64_t now_us,
             std::vector<Queued>& queued);
  void enqueue(PacketPtr packet, Port port, std::vector<Queued>& queued) const;
  /// Set the metadata of a new packet: the fields of a field list are copied, others are 0.
  void set_metadata(const std::uint64_t* from, std::uint64_t* to, std::uint64_t list,
                    Instance instance) const;
  void reset_metadata(std::uint64_t* words) const;
  void drop(PacketPtr packet, DropCause cause) {
    ++counts.dropped[static_cast<std::size_t>(cause)];
    drops.push_back(cause);
    take_back(packet.release());
  }
  /// Store a digest of a packet.
  void store_digest(const Packet& packet, std::uint64_t list, std::uint64_t now_us);
  /// Set a field of at most 64 bits. Does nothing for a standard field that the program does not
  /// have: such a field has 0 bits in word 0, which is unused.
  static void set(std::uint64_t* words, const Field& field, std::uint64_t value) {
    words[field.word] = value & field.mask();
    words[field.written] = 1;
  }
  static std::uint64_t get(const std::uint64_t* words, const Field& field) {
    return field.bits == 0 ? 0 : words[field.word];
  }

  // parse.cpp
  /// Parse a packet. Return the number of the error in the program (Errors), or Errors::none.
  std::uint64_t parse(Packet& packet);
  std::uint64_t run_parser(Packet& packet, std::size_t& at);
  bool extract(Packet& packet, Index header, std::size_t& at, std::size_t length,
               std::uint64_t variable_bits);
  [[nodiscard]] bool matches(const Transition& transition, const std::uint64_t* key,
                             std::size_t words) const;

  // pipeline.cpp
  void run(const Pipeline& pipeline, Packet& packet);
  /// Apply a table to a packet. Return the next node of the pipeline.
  Index apply(Index table, Packet& packet);
  /// Run an action with the values of its parameters.
  void run_action(Index action, const std::uint64_t* data, Packet& packet);
  /// Run one step of an action. `next` is the index of the following step. Return the index of the
  /// step to run next.
  std::size_t step(const Step& step, std::size_t next, const Scope& scope, Packet& packet);
  void assign(const Step& step, const Scope& scope);
  /// Make a header valid, and the others of its union invalid.
  void make_valid(std::uint64_t* words, const Header& header) const {
    if (header.union_index != none) {
      for (const Index other : program->unions[header.union_index].headers) {
        words[program->headers[other].base + valid_word] = 0;
      }
    }
    words[header.base + valid_word] = 1;
  }
  void copy_headers(std::uint64_t* words, const std::vector<Index>& to,
                    const std::vector<Index>& from);
  void copy_header(std::uint64_t* words, Index to, Index from);
  void push(std::uint64_t* words, const Stack& stack, std::uint64_t count);
  void pop(std::uint64_t* words, const Stack& stack, std::uint64_t count);
  void log(const LogMessage& message, const Scope& scope) const;
  /// Count a backward jump of an action. After too many jumps, the packet is dropped.
  void count_loop();
  /// Return a random number from `low` to `high`.
  std::uint64_t draw(std::uint64_t low, std::uint64_t high);
  Scope scope_of(std::uint64_t* words, const std::uint64_t* data);

  // deparse.cpp
  std::uint64_t calculate(const Calculation& calculation, const Packet& packet);
  void update_checksums(Packet& packet);
  bool verify_checksums(const Packet& packet);
  /// Write the headers into the frame. Return false if the frame became too long.
  bool deparse(Packet& packet);
  [[nodiscard]] std::size_t bytes_of(const std::uint64_t* words, Index header) const;

  model::Stream random_;
  std::uint64_t draws_ = 0;
  std::uint64_t now_us_ = 0;
  Requests requests_;
  std::vector<std::unique_ptr<Packet>> all_packets_;
  std::vector<Packet*> idle_;          // packets for reuse
  std::vector<std::uint8_t> scratch_;  // input of hashes
  /// A stored digest.
  struct StoredDigest {
    std::uint64_t list, at_us;
    std::size_t words;  // index of its first value in digest_words_
  };
  std::vector<StoredDigest> stored_digests_;
  std::vector<std::uint64_t> digest_words_;
};

/// Convert between a number and its big-endian bytes.
inline std::uint64_t big_endian(std::uint64_t value) {
  return std::endian::native == std::endian::little ? __builtin_bswap64(value) : value;
}

/// Writes values bit by bit, the highest bit first.
class BitWriter {
 public:
  explicit BitWriter(std::uint8_t* to) : to_(to), begin_(to) {}
  /// Write at most 64 bits. Higher bits of `value` must be 0.
  void put(std::uint64_t value, std::uint32_t bits) {
    const std::uint32_t room = 64 - held_;
    if (bits < room) {
      waiting_ = waiting_ << bits | value;
      held_ += bits;
      return;
    }
    held_ = bits - room;
    store(room == 64 ? value : waiting_ << room | value >> held_, 8);
    waiting_ = value & ((1ULL << held_) - 1);
  }
  /// Write a field.
  void put(const std::uint64_t* words, const Field& field) {
    if (field.limbs == 1) {
      put(words[0], field.bits);
      return;
    }
    std::uint32_t top = field.bits % 64 == 0 ? 64 : field.bits % 64;
    for (std::uint32_t i = field.limbs; i-- > 0; top = 64) put(words[i], top);
  }
  void put_bytes(const std::uint8_t* bytes, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) put(bytes[i], 8);
  }
  /// Pad with zeros to a whole byte. Return the number of bytes.
  std::size_t finish() {
    if (held_ > 0) store(waiting_ << (64 - held_), (held_ + 7) / 8);
    held_ = 0;
    return static_cast<std::size_t>(to_ - begin_);
  }

 private:
  void store(std::uint64_t value, std::size_t bytes) {
    value = big_endian(value);
    std::memcpy(to_, &value, bytes);
    to_ += bytes;
  }

  std::uint8_t* to_;
  std::uint8_t* begin_;
  std::uint64_t waiting_ = 0;  // holds bits in its lowest `held_` bits, fewer than 64
  std::uint32_t held_ = 0;
};

}  // namespace nagi::p4
