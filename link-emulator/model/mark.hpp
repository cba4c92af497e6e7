// SPDX-License-Identifier: Apache-2.0
//
// Marking (ECN, RFC 3168): while the averaged queue is over a threshold, packets that come in are
// marked. The average is RED's (Floyd and Jacobson 1993, section 4): at every arrival it moves to
// the queue's length by a share `weight` of the difference; over an idle time it falls as if the
// packets had come that could have been sent.
#pragma once

#include <variant>

#include "model/units.hpp"

namespace nagi::model {

struct MarkConfig {
  std::variant<Packets, Bytes> threshold;
  double weight = 1;  // in (0, 1]; 1: the queue itself
};

class QueueAverage {
 public:
  explicit QueueAverage(const MarkConfig& config) : config_(config) {}

  /// What waits as a packet comes in. Returns whether the average is over the threshold.
  bool is_over(Packets packets, Bytes bytes);
  /// Nothing waited and nothing was sent for as long as `packets` packets take.
  void idle(std::uint64_t packets);
  /// Goes on by another configuration; the average stays unless it is of something else.
  void change(const MarkConfig& config) {
    if (config.threshold.index() != config_.threshold.index()) average_ = 0;
    config_ = config;
  }

 private:
  MarkConfig config_;
  double average_ = 0;  // packets or bytes, as the threshold is
};

}  // namespace nagi::model
