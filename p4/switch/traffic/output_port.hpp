// SPDX-License-Identifier: Apache-2.0
//
// One output port's part of the traffic manager: queues of strict priority in front of a server.
// Instants in, instants out; no clock, no I/O.
//
// The order of things. A packet is queued, or dropped if its queue is full. When the server has
// nothing to send, the packet first in the non-empty queue of the highest priority (the highest
// number, as in bmv2) leaves its queue; only then is its egress program run, which therefore sees
// the queue as it is at that instant, and may drop it or change its length. What it is sent as
// occupies the server for as long as its new length takes: the rate is that of what is on the wire,
// headers added in egress included, and a packet that egress drops takes no time. Limits of depth
// count what waits, not what is being sent, by the length that packets have when they are queued,
// and hold for each priority's queue on its own, as in bmv2.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "traffic/port_server.hpp"
#include "traffic/queue_statistics.hpp"

namespace nagi::p4 {

struct QueueConfig {
  Rates rates;
  std::optional<std::uint64_t> depth_packets;  // nothing: no limit
  std::optional<nagi::Bytes> depth_bytes;
  std::uint32_t priorities = 1;
};

enum class Refusal { queue_full, no_such_priority };

struct OutputCounters {
  std::uint64_t queued = 0;  // packets that came and were not refused
  std::uint64_t queue_full = 0;
  std::uint64_t no_such_priority = 0;
  std::uint64_t dropped_in_egress = 0;
  std::uint64_t sent = 0;
  nagi::Bytes sent_bytes;    // without overhead
  nagi::Bytes served_bytes;  // with it
  Duration serving{};        // time the server was busy
};

/// `Item`: what a packet is to the caller; it is moved.
template <class Item>
class OutputPort {
 public:
  explicit OutputPort(const QueueConfig& config)
      : config_(config), server_(config.rates), queues_(config.priorities) {}

  /// A packet of `size` comes. Takes it from `item`, unless it is refused. A free server has to be
  /// given it before the next one comes: see take().
  std::optional<Refusal> offer(Item& item, nagi::Bytes size, std::uint32_t priority, Instant at) {
    if (priority >= queues_.size()) {
      ++counters_.no_such_priority;
      return Refusal::no_such_priority;
    }
    Queue& queue = queues_[priority];
    const Depth now = depth_.now();
    const bool goes_at_once = !is_busy(at) && now.packets == 0;
    if (!goes_at_once && !has_room(queue, size)) {
      ++counters_.queue_full;
      return Refusal::queue_full;
    }
    ++counters_.queued;
    const auto before = static_cast<std::uint32_t>(queue.waiting.size());
    queue.waiting.push_back({std::move(item), size, at, before});
    queue.bytes += size;
    depth_.set({now.packets + 1, now.bytes + size}, at);
    return std::nullopt;
  }

  /// A packet comes that need not wait, as nothing does and the server is free: it counts as if it
  /// had been offered and taken. False if it has to be offered.
  bool pass(std::uint32_t priority, Instant at) {
    if (priority >= queues_.size() || depth_.now().packets != 0 || is_busy(at)) return false;
    ++counters_.queued;
    return true;
  }

  /// A packet that has left its queue.
  struct Taken {
    Item item;
    std::uint32_t priority = 0;
    Instant queued{};
    std::uint32_t depth_at_enqueue = 0;  // packets in the same queue before it
    std::uint32_t depth_at_dequeue = 0;  // packets left in it
  };
  /// The next packet, if there is one and the server is free at `at`. The caller says what becomes
  /// of it, by send() or drop(), before it asks again.
  std::optional<Taken> take(Instant at) {
    if (is_busy(at)) return std::nullopt;
    for (std::size_t priority = queues_.size(); priority-- > 0;) {
      Queue& queue = queues_[priority];
      if (queue.waiting.empty()) continue;
      Waiting first = std::move(queue.waiting.front());
      queue.waiting.pop_front();
      queue.bytes -= first.size;
      Depth left{depth_.now().packets - 1, depth_.now().bytes};
      left.bytes -= first.size;
      depth_.set(left, at);
      return Taken{std::move(first.item), static_cast<std::uint32_t>(priority), first.at,
                   first.before, static_cast<std::uint32_t>(queue.waiting.size())};
    }
    return std::nullopt;
  }
  /// It is sent as `size` bytes from `at` on. Returns until when.
  Instant send(nagi::Bytes size, Instant at) {
    follows_ = at == server_.until();
    const Instant until = server_.begin(size, at);
    ++counters_.sent;
    counters_.sent_bytes += size;
    counters_.served_bytes += server_.counted(size);
    counters_.serving += until - at;
    return until;
  }
  /// Its egress program dropped it.
  void drop() { ++counters_.dropped_in_egress; }

  /// What the server counts of a packet.
  [[nodiscard]] nagi::Bytes counted(nagi::Bytes size) const { return server_.counted(size); }
  /// Whether a packet is being sent. At the instant of its end it is not.
  [[nodiscard]] bool is_busy(Instant at) const { return server_.until() > at; }
  /// When the packet sent last has been sent, or will have been.
  [[nodiscard]] Instant busy_until() const { return server_.until(); }
  /// Whether the packet sent last was begun at the end of the one before: the port was backlogged.
  [[nodiscard]] bool follows() const { return follows_; }

  /// Goes on by other rates and limits from `at`. No packet is lost by it: what waits stays, even
  /// over a smaller limit; what is being sent goes on at the new rate. The number of priorities
  /// stays as it is.
  void change(const QueueConfig& config, Instant at) {
    const Instant before = server_.until();
    const bool busy = is_busy(at);
    const Instant until = server_.change(config.rates, at);
    if (busy) counters_.serving += until - before;
    config_.rates = config.rates;
    config_.depth_packets = config.depth_packets;
    config_.depth_bytes = config.depth_bytes;
    follows_ = false;
  }

  [[nodiscard]] const QueueConfig& config() const { return config_; }
  [[nodiscard]] const OutputCounters& counters() const { return counters_; }
  /// Of what waits in all queues.
  [[nodiscard]] const QueueStatistics& depth() const { return depth_; }
  /// The same since this was last called.
  QueueStatistics::Stretch take_depth(Instant at) { return depth_.take(at); }

 private:
  struct Waiting {
    Item item;
    nagi::Bytes size;
    Instant at;
    std::uint32_t before;
  };
  struct Queue {
    std::deque<Waiting> waiting;
    nagi::Bytes bytes;
  };

  [[nodiscard]] bool has_room(const Queue& queue, nagi::Bytes size) const {
    if (config_.depth_packets && queue.waiting.size() >= *config_.depth_packets) return false;
    return !config_.depth_bytes || queue.bytes + size <= *config_.depth_bytes;
  }

  QueueConfig config_;
  PortServer server_;
  std::vector<Queue> queues_;
  QueueStatistics depth_;
  OutputCounters counters_;
  bool follows_ = false;
};

}  // namespace nagi::p4
