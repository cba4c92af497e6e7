// SPDX-License-Identifier: Apache-2.0
//
// FQ-CoDel (RFC 8290): one queue per flow, each with CoDel. Deficit round robin serves the queues,
// new flows first. If all queues together exceed the limit, packets of the longest queue (in bytes)
// are dropped.
#pragma once

#include <algorithm>
#include <list>

#include "model/described.hpp"
#include "model/queue/codel_control.hpp"

namespace nagi::model {

struct FqCoDel {
  QueueLimit limit = Packets{10240};  // of all flows together
  Duration target = std::chrono::milliseconds(5);
  Duration interval = std::chrono::milliseconds(100);
  bool ecn = true;
  Bytes packet{1500};                 // size of a full-size packet
  std::optional<Bytes> quantum = {};  // bytes per flow and turn; default: `packet`
  std::uint64_t flows = 1024;
  Style style = Style::as_linux;

  static constexpr std::string_view name = "fq_codel";
  static constexpr auto fields() {
    using Self = FqCoDel;
    return std::tuple(optional("target_ns", &Self::target, bounds::aqm_target_ns),
                      optional("interval_ns", &Self::interval, bounds::aqm_interval_ns),
                      NotAbove{"target_ns", &Self::target, "interval_ns", &Self::interval},
                      FlagField<Self>{"ecn", &Self::ecn},
                      optional("full_packet_bytes", &Self::packet, bounds::packet_bytes),
                      optional("quantum_bytes", &Self::quantum, bounds::packet_bytes),
                      optional("flows", &Self::flows, bounds::queue_flows), style_field<Self>());
  }

  class Model;
};

class FqCoDel::Model final : public Queue {
 public:
  Model(const FqCoDel& config, const Stream& draws)
      : config_(config),
        parameters_(config),
        quantum_(static_cast<std::int64_t>(config.quantum.value_or(config.packet).count)),
        draws_(draws),
        flows_(config.flows) {}

  void enqueue(const Packet& packet, Instant at, std::optional<Bytes> in_transmission,
               QueueEvents& events) override {
    adopt({packet, at});
    const bool exceeds_limit = std::visit(
        [this]<class Limit>(const Limit& limit) {
          if constexpr (std::is_same_v<Limit, Packets>) return packets_ > limit.count;
          if constexpr (std::is_same_v<Limit, Bytes>) return bytes_ > limit;
          return false;
        },
        config_.limit);
    if (in_transmission && exceeds_limit) drop_from_longest(events);
  }

  std::optional<Packet> dequeue(Instant at, QueueEvents& events) override {
    for (;;) {
      const bool is_new = !new_flows_.empty();
      std::list<Flow*>& list = is_new ? new_flows_ : old_flows_;
      if (list.empty()) return std::nullopt;
      Flow& flow = *list.front();
      if (flow.deficit <= 0) {
        flow.deficit += quantum_;
        old_flows_.splice(old_flows_.end(), list, list.begin());
        continue;
      }
      const auto packet = flow.control.dequeue(
          parameters_, at, events,
          [&]() -> std::optional<Waiting> {
            if (flow.fifo.is_empty()) return std::nullopt;
            return pop(flow);
          },
          [&] { return parameters_.is_linux() ? bytes_ : flow.fifo.bytes(); });
      if (packet) {
        flow.deficit -= static_cast<std::int64_t>(packet->size.count);
        return packet;
      }
      // A new flow that has become empty joins the old flows, so that it does not become a new flow
      // again immediately.
      if (is_new && !old_flows_.empty()) {
        old_flows_.splice(old_flows_.end(), list, list.begin());
      } else {
        flow.is_listed = false;
        list.pop_front();
      }
    }
  }

  void adopt(const Waiting& waiting) override {
    Flow& flow = flow_of(waiting.packet);
    flow.fifo.push(waiting);
    ++packets_;
    bytes_ += waiting.packet.size;
    if (flow.is_listed) return;
    flow.is_listed = true;
    flow.deficit = quantum_;
    new_flows_.push_back(&flow);
  }

  std::vector<Waiting> take_all() override {
    std::vector<Waiting> all;
    for (Flow& flow : flows_) {
      while (!flow.fifo.is_empty()) all.push_back(pop(flow));
    }
    std::ranges::stable_sort(all, {}, &Waiting::since);
    return all;
  }

  [[nodiscard]] std::size_t packets() const override { return packets_; }
  [[nodiscard]] Bytes bytes() const override { return bytes_; }
  void for_each(const std::function<void(const Packet&)>& visit) const override {
    for (const Flow& flow : flows_) {
      for (const Waiting& waiting : flow.fifo) visit(waiting.packet);
    }
  }

 private:
  struct Flow {
    Fifo fifo;
    CoDelControl control;
    std::int64_t deficit = 0;
    bool is_listed = false;
  };

  /// Return the queue of a packet's flow, by a hash that depends on the seed of the run.
  Flow& flow_of(const Packet& packet) {
    constexpr int half = 32;
    return flows_[(draws_.draw(packet.flow) >> half) * flows_.size() >> half];
  }

  Waiting pop(Flow& flow) {
    --packets_;
    bytes_ -= flow.fifo.front().packet.size;
    return flow.fifo.pop();
  }

  /// Drop packets from the head of the longest queue, until half of its bytes or 64 packets are
  /// dropped.
  void drop_from_longest(QueueEvents& events) {
    constexpr std::uint32_t max_drops = 64;
    Flow& longest =
        *std::ranges::max_element(flows_, {}, [](const Flow& flow) { return flow.fifo.bytes(); });
    const std::uint64_t half = longest.fifo.bytes().count / 2;
    std::uint64_t dropped = 0;
    std::uint32_t drops = 0;
    for (; drops < max_drops && (drops == 0 || dropped < half); ++drops) {
      const Packet packet = pop(longest).packet;
      dropped += packet.size.count;
      events.drops.push_back({packet, Fate::queue_overflow});
    }
    if (parameters_.is_linux()) longest.control.add_drops(drops);
  }

  FqCoDel config_;
  CoDelParameters parameters_;
  std::int64_t quantum_;
  Stream draws_;
  std::vector<Flow> flows_;
  std::list<Flow*> new_flows_;
  std::list<Flow*> old_flows_;
  std::size_t packets_ = 0;
  Bytes bytes_;
};

}  // namespace nagi::model
