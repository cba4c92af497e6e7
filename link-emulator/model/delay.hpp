// SPDX-License-Identifier: Apache-2.0
//
// Propagation delay: constant or following a trace, with or without jitter. The delay of a packet
// depends only on its index and the time at which it was sent, so equal traffic has equal delays.
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

/// All distributions of jitter. Each has at(draw), the jitter for a 64-bit draw, and min(), the
/// smallest jitter, or Duration::min() if there is none. Add a new distribution here.
using JitterDistribution =
    std::variant<std::monostate, UniformJitter, NormalJitter, ExponentialJitter, TableJitter>;

struct JitterConfig {
  JitterDistribution distribution;
  /// Probability that a packet has the jitter of the previous packet. Correlation does not change
  /// the distribution. The autocorrelation at lag k is correlation^k.
  double correlation = 0;
  /// If true, jitter that makes the delay negative is drawn again, which truncates the
  /// distribution. If false, the delay becomes 0.
  bool redraw_negative = false;
};

using DelayConfig = std::variant<Duration, Trace<Duration>>;

struct JitterStreams {
  Stream draws;
  Stream repeats;  // decides whether a packet has the previous jitter
  Stream redraws;
};

/// The delay of packets after transmission.
class Delay {
 public:
  Delay(DelayConfig delay, JitterConfig jitter, const JitterStreams& streams)
      : delay_(std::move(delay)),
        jitter_(std::move(jitter)),
        repeats_(jitter_.correlation),
        streams_(streams) {}

  /// Return the delay, at least 0, of packet number `index`, which was sent at `sent`. Call this in
  /// the order in which the packets were sent.
  [[nodiscard]] Duration next(std::uint64_t index, Instant sent);
  /// Return the least delay that any packet may have.
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
