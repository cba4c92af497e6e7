// SPDX-License-Identifier: Apache-2.0
//
// Marking above a threshold (RFC 3168): arriving packets are marked while the average queue length
// exceeds the threshold. The average is that of RED (Floyd and Jacobson 1993, section 4): at every
// arrival it moves towards the queue length by the fraction `weight` of the difference. After an
// idle time it decreases as if as many typical packets had arrived as could have been sent.
#pragma once

#include "model/described.hpp"
#include "model/marking/rule.hpp"

namespace nagi::model {

struct ThresholdMarking {
  std::variant<Packets, Bytes> threshold;
  double weight = 1;   // in (0, 1]; with 1 the average is the queue length itself
  Bytes packet{1500};  // size of a typical packet

  static constexpr std::string_view name = "threshold";
  static constexpr auto fields() {
    using Self = ThresholdMarking;
    return std::tuple(SizeField<Self>{"threshold_packets", "threshold_bytes", &Self::threshold,
                                      bounds::mark_threshold_packets, bounds::mark_threshold_bytes},
                      required("weight", &Self::weight, bounds::mark_weight),
                      optional("packet_bytes", &Self::packet, bounds::packet_bytes));
  }

  class Model;
};

class ThresholdMarking::Model final : public MarkingRule {
 public:
  explicit Model(const ThresholdMarking& config) : config_(config) {}

  bool marks(Packets packets, Bytes bytes) override {
    const auto* byte_limit = std::get_if<Bytes>(&config_.threshold);
    const auto length = static_cast<double>(byte_limit ? bytes.count : packets.count);
    const auto threshold = static_cast<double>(
        byte_limit ? byte_limit->count : std::get<Packets>(config_.threshold).count);
    average_ += config_.weight * (length - average_);
    return average_ > threshold;
  }

  void idle(std::uint64_t packets) override {
    // Repeated squaring computes (1 - weight)^packets equally on all machines.
    double power = 1 - config_.weight;
    for (; packets != 0; packets >>= 1) {
      if ((packets & 1) != 0) average_ *= power;
      power *= power;
    }
  }

  [[nodiscard]] Bytes typical_packet() const override { return config_.packet; }

  /// Take over the previous average if it has the same unit (packets or bytes).
  void resume(const MarkingRule& previous) override {
    const auto* replaced = dynamic_cast<const Model*>(&previous);
    if (replaced != nullptr && replaced->config_.threshold.index() == config_.threshold.index()) {
      average_ = replaced->average_;
    }
  }

 private:
  ThresholdMarking config_;
  double average_ = 0;  // packets or bytes, in the unit of the threshold
};

}  // namespace nagi::model
