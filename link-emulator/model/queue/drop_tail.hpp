// SPDX-License-Identifier: Apache-2.0
//
// Drop-tail: first in, first out; packets that arrive at a full queue are dropped.
#pragma once

#include "model/described.hpp"
#include "model/queue/queue.hpp"

namespace nagi::model {

struct DropTail {
  QueueLimit limit;
  /// If true, the packet in transmission counts as waiting, as in mahimahi's queues.
  bool counts_transmission = false;

  static constexpr std::string_view name = "drop_tail";
  static constexpr auto fields() {
    return std::tuple(FlagField<DropTail>{"counts_transmission", &DropTail::counts_transmission});
  }

  class Model;
};

class DropTail::Model final : public SingleQueue {
 public:
  Model(const DropTail& config, const Stream& /*draws*/) : config_(config) {}

  void enqueue(const Packet& packet, Instant at, std::optional<Bytes> in_transmission,
               QueueEvents& events) override {
    const bool is_counted = in_transmission && config_.counts_transmission;
    const std::size_t packets = fifo().packets() + (is_counted ? 1 : 0);
    const Bytes bytes = fifo().bytes() + (is_counted ? *in_transmission : Bytes{});
    if (in_transmission && !has_room(config_.limit, packets, bytes, packet)) {
      events.drops.push_back({packet, Fate::queue_overflow});
    } else {
      fifo().push({packet, at});
    }
  }

  std::optional<Packet> dequeue(Instant /*at*/, QueueEvents& /*events*/) override {
    if (fifo().is_empty()) return std::nullopt;
    return fifo().pop().packet;
  }

 private:
  DropTail config_;
};

}  // namespace nagi::model
