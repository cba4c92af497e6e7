// SPDX-License-Identifier: Apache-2.0
//
// One output port of the traffic manager: queues of strict priority in front of a server. Times are
// passed in and returned; there is no clock and no I/O.
//
// A packet is queued, or dropped if its queue is full. When the server is idle, the first packet in
// the non-empty queue of the highest priority (the highest number, as in bmv2) leaves its queue.
// Its egress program runs only then, and therefore sees the queue at that time; it may drop the
// packet or change its length. The packet occupies the server for the time that its new length
// takes: the rate is that on the wire, including headers added in egress, and a packet that egress
// drops takes no time. Limits of depth count waiting packets, not the one being sent, by their
// length when they are queued, and apply to each priority's queue separately, as in bmv2.
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

/// `Item` is the caller's type of a packet; it is moved.
template <class Item>
class OutputPort {
 public:
  explicit OutputPort(const QueueConfig& config)
      : config_(config), server_(config.rates), queues_(config.priorities) {}

  /// Offer a packet of `size`. It is taken from `item` unless it is refused. If the server is free,
  /// the caller must call take() before the next offer.
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

  /// Count a packet that need not wait, since no packet waits and the server is free, as if it had
  /// been offered and taken. Return false if it has to be offered.
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
      Depth left{depth_.now().packets - 1, depth_.now().bytes};
      left.bytes -= first.size;
      depth_.set(left, at);
      return Taken{std::move(first.item), static_cast<std::uint32_t>(priority), first.at,
                   first.before, static_cast<std::uint32_t>(queue.waiting.size())};
    }
    return std::nullopt;
  }
  /// Send the taken packet as `size` bytes from `at` on. Return the end of the transmission.
  Instant send(nagi::Bytes size, Instant at) {
    follows_ = at == server_.until();
    const Instant until = server_.begin(size, at);
    ++counters_.sent;
    counters_.sent_bytes += size;
    counters_.served_bytes += server_.counted(size);
    counters_.serving += until - at;
    return until;
  }
  /// Count the taken packet as dropped by its egress program.
  void drop() { ++counters_.dropped_in_egress; }

  /// Return the bytes that the server counts for a packet.
  [[nodiscard]] nagi::Bytes counted(nagi::Bytes size) const { return server_.counted(size); }
  /// Return whether a packet is being sent; false at the end of its transmission.
  [[nodiscard]] bool is_busy(Instant at) const { return server_.until() > at; }
  /// Return the end of the last transmission, which may be in the future.
  [[nodiscard]] Instant busy_until() const { return server_.until(); }
  /// Return whether the last transmission began at the end of the previous one: the port was
  /// backlogged.
  [[nodiscard]] bool follows() const { return follows_; }

  /// Change rates and limits from `at` on. No packet is lost: waiting packets stay even beyond a
  /// smaller limit, and the packet being sent continues at the new rate. The number of priorities
  /// does not change.
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
  /// Return the statistics of all queues together.
  [[nodiscard]] const QueueStatistics& depth() const { return depth_; }
  /// Return the statistics of all queues since the last call.
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
