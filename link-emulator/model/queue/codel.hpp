// SPDX-License-Identifier: Apache-2.0
//
// CoDel (RFC 8289): one queue, controlled by the sojourn time of its packets.
#pragma once

#include "model/described.hpp"
#include "model/queue/codel_control.hpp"

namespace nagi::model {

struct CoDel {
  QueueLimit limit = Packets{1000};
  Duration target = std::chrono::milliseconds(5);
  Duration interval = std::chrono::milliseconds(100);
  bool ecn = false;
  Bytes packet{1500};  // size of a full-size packet
  Style style = Style::as_linux;

  static constexpr std::string_view name = "codel";
  static constexpr auto fields() {
    return std::tuple(optional("target_ns", &CoDel::target, bounds::aqm_target_ns),
                      optional("interval_ns", &CoDel::interval, bounds::aqm_interval_ns),
                      NotAbove{"target_ns", &CoDel::target, "interval_ns", &CoDel::interval},
                      FlagField<CoDel>{"ecn", &CoDel::ecn},
                      optional("full_packet_bytes", &CoDel::packet, bounds::packet_bytes),
                      style_field<CoDel>());
  }

  class Model;
};

class CoDel::Model final : public SingleQueue {
 public:
  Model(const CoDel& config, const Stream& /*draws*/) : limit_(config.limit), parameters_(config) {}

  void enqueue(const Packet& packet, Instant at, std::optional<Bytes> in_transmission,
               QueueEvents& events) override {
    if (overflows(limit_, *this, packet, in_transmission)) {
      events.drops.push_back({packet, Fate::queue_overflow});
    } else {
      fifo().push({packet, at});
    }
  }

  std::optional<Packet> dequeue(Instant at, QueueEvents& events) override {
    return control_.dequeue(
        parameters_, at, events,
        [this]() -> std::optional<Waiting> {
          if (fifo().is_empty()) return std::nullopt;
          return fifo().pop();
        },
        [this] { return fifo().bytes(); });
  }

 private:
  QueueLimit limit_;
  CoDelParameters parameters_;
  CoDelControl control_;
};

}  // namespace nagi::model
