// SPDX-License-Identifier: Apache-2.0
//
// One output port: queues with strict priority, and a server, which sends packets one after the
// other at the port's rate. There is no clock and no I/O: callers pass the time.
//
// A packet is queued, or dropped if its queue is full. When the server is idle, the first packet of
// the non-empty queue with the highest priority (the highest number, as in bmv2) leaves its queue.
// Only then the caller runs egress for the packet, so that egress sees the queue at that time.
// Egress may drop the packet or change its length. Then the packet occupies the server for the
// time that its new length takes. The rate therefore includes headers that egress added, and a
// packet that egress drops takes no time. A limit of depth applies to each queue separately, as in
// bmv2. It counts waiting packets, with their length when they were queued, but not the packet that
// is being sent.
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
  std::optional<std::uint64_t> depth_packets;  // unlimited if empty
  std::optional<nagi::Bytes> depth_bytes;
  std::uint32_t priorities = 1;
};

/// Why a packet was not queued.
enum class Refusal { queue_full, no_such_priority };

struct OutputCounters {
  std::uint64_t queued = 0;  // packets that were accepted
  std::uint64_t queue_full = 0;
  std::uint64_t no_such_priority = 0;
  std::uint64_t dropped_in_egress = 0;
  std::uint64_t sent = 0;
  nagi::Bytes sent_bytes;    // bytes without overhead
  nagi::Bytes served_bytes;  // bytes with overhead
  Duration serving{};        // busy time of the server
};

/// `Item` is the type of the caller's packets. Packets are moved into and out of queues.
template <class Item>
class OutputPort {
 public:
  explicit OutputPort(const QueueConfig& config)
      : config_(config), server_(config.rates), queues_(config.priorities) {}

  /// Queue a packet of `size`, which is moved from `item`. If the packet is refused, return the
  /// reason and leave `item` unchanged. If the server is free, the caller must call take() before
  /// the next offer.
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

  /// If no packet waits and the server is free, count a packet as if it had been offered and taken,
  /// and return true. Otherwise return false: the caller must offer the packet.
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
    std::uint32_t depth_at_enqueue = 0;  // packets that were in the same queue before it
    std::uint32_t depth_at_dequeue = 0;  // packets that remained in the queue
  };
  /// Take the next packet, if there is one and the server is free at `at`. The caller must call
  /// send() or drop() for it before the next take().
  std::optional<Taken> take(Instant at) {
    if (is_busy(at)) return std::nullopt;
    for (std::size_t priority = queues_.size(); priority-- > 0;) {
      Queue& queue = queues_[priority];
      if (queue.waiting.empty()) continue;
      Waiting first = std::move(queue.waiting.front());
      queue.waiting.pop_front();
      queue.bytes -= first.size;
      Depth remaining{depth_.now().packets - 1, depth_.now().bytes};
      remaining.bytes -= first.size;
      depth_.set(remaining, at);
      return Taken{std::move(first.item), static_cast<std::uint32_t>(priority), first.at,
                   first.before, static_cast<std::uint32_t>(queue.waiting.size())};
    }
    return std::nullopt;
  }
  /// Send the taken packet, which now has `size` bytes, from `at` on. Return the end of the
  /// transmission.
  Instant send(nagi::Bytes size, Instant at) {
    follows_ = at == server_.until();
    const Instant until = server_.begin(size, at);
    ++counters_.sent;
    counters_.sent_bytes += size;
    counters_.served_bytes += server_.counted(size);
    counters_.serving += until - at;
    return until;
  }
  /// Count the taken packet as dropped in egress.
  void drop() { ++counters_.dropped_in_egress; }

  /// Return the bytes of a packet that count for the rate: its size plus the overhead.
  [[nodiscard]] nagi::Bytes counted(nagi::Bytes size) const { return server_.counted(size); }
  /// Return whether a packet is being sent at `at`; false at the end of its transmission.
  [[nodiscard]] bool is_busy(Instant at) const { return server_.until() > at; }
  /// Return the end of the last transmission, which may be in the future.
  [[nodiscard]] Instant busy_until() const { return server_.until(); }
  /// Return whether the last transmission began at the end of the previous one, so that the port
  /// was backlogged.
  [[nodiscard]] bool follows() const { return follows_; }

  /// Change rates and depths from `at` on. No packet is lost: packets that already wait are not
  /// dropped even if they exceed a smaller depth, and the packet that is being sent continues at
  /// the new rate. `config.priorities` is ignored.
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
  /// Return the depth statistics of all queues together.
  [[nodiscard]] const QueueStatistics& depth() const { return depth_; }
  /// Return the depth statistics of all queues together since the last call.
  QueueStatistics::Stretch take_depth(Instant at) { return depth_.take(at); }

 private:
  struct Waiting {
    Item item;
    nagi::Bytes size;
    Instant at;            // time at which it was queued
    std::uint32_t before;  // packets that were in the same queue before it
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
