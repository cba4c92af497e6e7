// SPDX-License-Identifier: Apache-2.0
//
// Propagation delay: constant or along a trace, with or without jitter. How long each packet is
// under way follows from its index and from when it was sent, so it is the same for the same
// traffic.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "base/units.hpp"
#include "model/jitter/exponential.hpp"
#include "model/jitter/normal.hpp"
#include "model/jitter/table.hpp"
#include "model/jitter/uniform.hpp"
#include "model/random.hpp"
#include "model/trace.hpp"

namespace nagi::model {

/// All distributions of jitter. One of its own file is added here.
using JitterDistribution =
    std::variant<std::monostate, UniformJitter, NormalJitter, ExponentialJitter, TableJitter>;

struct JitterConfig {
  JitterDistribution distribution;
  /// The probability that a packet has the jitter of the one before it. The distribution stays what
  /// it is, and the autocorrelation at lag k is correlation^k.
  double correlation = 0;
  /// A sum of delay and jitter below 0 is drawn anew, which truncates the distribution. Otherwise
  /// it becomes 0.
  bool redraw_negative = false;
};

using DelayConfig = std::variant<Duration, Trace<Duration>>;

struct JitterStreams {
  Stream draws;
  Stream repeats;  // whether the jitter is the one before
  Stream redraws;
};

class Delay {
 public:
  Delay(DelayConfig delay, JitterConfig jitter, const JitterStreams& streams)
      : delay_(std::move(delay)),
        jitter_(std::move(jitter)),
        repeats_(jitter_.correlation),
        streams_(streams) {}

  /// How long packet number `index`, sent at `sent`, is under way. Never below 0. Packets are asked
  /// about in the order in which they were sent.
  [[nodiscard]] Duration next(std::uint64_t index, Instant sent);
  /// No packet is under way for less.
  [[nodiscard]] Duration min() const;

 private:
  [[nodiscard]] Duration jitter_at(std::uint64_t draw) const;

  DelayConfig delay_;
  JitterConfig jitter_;
  Chance repeats_;
  JitterStreams streams_;
  std::optional<Duration> last_jitter_;
  std::uint64_t redraws_ = 0;
};

}  // namespace nagi::model
