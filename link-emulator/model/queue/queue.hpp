// SPDX-License-Identifier: Apache-2.0
//
// The interface of queue disciplines. A discipline holds the packets that wait for the rate server
// of a direction, and decides which packet is sent next, dropped or marked. The instants in
// successive calls never decrease.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <variant>
#include <vector>

#include "base/interface.hpp"
#include "model/packet.hpp"
#include "model/random.hpp"

namespace nagi::model {

/// The maximum size of a queue, without the packet in transmission.
using QueueLimit = std::variant<Unlimited, Packets, Bytes>;

/// A packet that waits.
struct Waiting {
  Packet packet;
  Instant since;
};

/// The drops and marks of a discipline.
struct QueueEvents {
  struct Drop {
    Packet packet;
    Fate fate;
  };
  std::vector<Drop> drops;
  std::uint64_t marks = 0;
};

/// A queue discipline with its packets.
class Queue : public Interface {
 public:
  /// Add an arriving packet. `in_transmission` is the size of the packet in transmission. If no
  /// packet is in transmission, the caller dequeues the new packet immediately.
  virtual void enqueue(const Packet& packet, Instant at, std::optional<Bytes> in_transmission,
                       QueueEvents& events) = 0;
  /// Remove and return the next packet to send, or nothing if the queue is empty.
  virtual std::optional<Packet> dequeue(Instant at, QueueEvents& events) = 0;

  /// Remove and return all packets in the order of their arrival, for a queue that replaces this
  /// one.
  virtual std::vector<Waiting> take_all() = 0;
  /// Add a packet from the queue that this queue replaces.
  virtual void adopt(const Waiting& waiting) = 0;

  [[nodiscard]] virtual std::size_t packets() const = 0;
  [[nodiscard]] virtual Bytes bytes() const = 0;
  virtual void for_each(const std::function<void(const Packet&)>& visit) const = 0;
};

/// A first-in, first-out list of packets with their total size, from which disciplines are built.
class Fifo {
 public:
  void push(const Waiting& waiting) {
    waiting_.push_back(waiting);
    bytes_ += waiting.packet.size;
  }
  Waiting pop() {
    const Waiting first = waiting_.front();
    waiting_.pop_front();
    bytes_ -= first.packet.size;
    return first;
  }
  [[nodiscard]] const Waiting& front() const { return waiting_.front(); }
  [[nodiscard]] bool is_empty() const { return waiting_.empty(); }
  [[nodiscard]] std::size_t packets() const { return waiting_.size(); }
  [[nodiscard]] Bytes bytes() const { return bytes_; }
  [[nodiscard]] auto begin() const { return waiting_.begin(); }
  [[nodiscard]] auto end() const { return waiting_.end(); }

 private:
  std::deque<Waiting> waiting_;
  Bytes bytes_;
};

/// Return whether a packet fits into a queue that holds `packets` packets of `bytes` bytes.
inline bool has_room(const QueueLimit& limit, std::size_t packets, Bytes bytes,
                     const Packet& packet) {
  if (const auto* maximum = std::get_if<Packets>(&limit)) return packets < maximum->count;
  if (const auto* maximum = std::get_if<Bytes>(&limit)) return bytes + packet.size <= *maximum;
  return true;
}

/// Return whether `queue` has no room for a packet. If no packet is in transmission, the packet
/// needs no room.
inline bool overflows(const QueueLimit& limit, const Queue& queue, const Packet& packet,
                      std::optional<Bytes> in_transmission) {
  return in_transmission && !has_room(limit, queue.packets(), queue.bytes(), packet);
}

/// A discipline with a single queue.
class SingleQueue : public Queue {
 public:
  std::vector<Waiting> take_all() override {
    std::vector<Waiting> all(fifo_.begin(), fifo_.end());
    fifo_ = {};
    return all;
  }
  void adopt(const Waiting& waiting) override { fifo_.push(waiting); }
  [[nodiscard]] std::size_t packets() const override { return fifo_.packets(); }
  [[nodiscard]] Bytes bytes() const override { return fifo_.bytes(); }
  void for_each(const std::function<void(const Packet&)>& visit) const override {
    for (const Waiting& waiting : fifo_) visit(waiting.packet);
  }

 protected:
  Fifo& fifo() { return fifo_; }

 private:
  Fifo fifo_;
};

/// Mark a packet if it is ECN-capable. Return whether it is marked.
inline bool try_to_mark(Packet& packet, QueueEvents& events) {
  if (packet.ecn == Ecn::ce) return true;  // the packet arrived with a mark
  if (!packet.may_be_marked()) return false;
  if (!packet.marked) ++events.marks;
  packet.marked = true;
  return true;
}

}  // namespace nagi::model
