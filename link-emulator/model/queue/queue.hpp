// SPDX-License-Identifier: Apache-2.0
//
// What a queue discipline is: what waits for a direction's rate server, and which of it is sent
// next, dropped or marked. Instants that are passed in never go back.
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

/// How much may wait. The packet being transmitted is not waiting.
using QueueLimit = std::variant<Unlimited, Packets, Bytes>;

/// A packet that waits.
struct Waiting {
  Packet packet;
  Instant since;
};

/// What a discipline did beside letting packets wait.
struct QueueEvents {
  struct Drop {
    Packet packet;
    Fate fate;
  };
  std::vector<Drop> drops;
  std::uint64_t marks = 0;
};

class Queue : public Interface {
 public:
  /// A packet comes in. `in_transmission` is what the rate server is busy with; where that is
  /// nothing, the packet is taken out again at once.
  virtual void enqueue(const Packet& packet, Instant at, std::optional<Bytes> in_transmission,
                       QueueEvents& events) = 0;
  /// What is sent next; nothing if nothing waits.
  virtual std::optional<Packet> dequeue(Instant at, QueueEvents& events) = 0;

  /// Goes on as another queue that it is replaced by. What waits is handed over in the order of
  /// its arrival.
  virtual std::vector<Waiting> take_all() = 0;
  virtual void adopt(const Waiting& waiting) = 0;

  [[nodiscard]] virtual std::size_t packets() const = 0;
  [[nodiscard]] virtual Bytes bytes() const = 0;
  virtual void for_each(const std::function<void(const Packet&)>& visit) const = 0;
};

/// Packets in the order of their arrival, with their bytes: what disciplines are made of.
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

/// Whether a packet still fits where so much waits.
inline bool has_room(const QueueLimit& limit, std::size_t packets, Bytes bytes,
                     const Packet& packet) {
  if (const auto* maximum = std::get_if<Packets>(&limit)) return packets < maximum->count;
  if (const auto* maximum = std::get_if<Bytes>(&limit)) return bytes + packet.size <= *maximum;
  return true;
}

/// Whether a packet finds no room in `queue`. Where nothing is in transmission it needs none.
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

/// Marks a packet that understands marks.
inline bool try_to_mark(Packet& packet, QueueEvents& events) {
  if (packet.ecn == Ecn::ce) return true;  // is marked already
  if (!packet.may_be_marked()) return false;
  if (!packet.marked) ++events.marks;
  packet.marked = true;
  return true;
}

}  // namespace nagi::model
