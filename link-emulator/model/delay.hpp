// SPDX-License-Identifier: Apache-2.0
//
// Propagation delay: constant or along a trace, with or without jitter. How long each packet is
// under way follows from its index and from when it was sent, so it is the same for the same
// traffic.
#pragma once

#include <cstdint>
#include <variant>

#include "model/random.hpp"
#include "model/trace.hpp"
#include "model/units.hpp"

namespace nagi::model {

struct NoJitter {};
/// Uniform in [-half_width, half_width).
struct UniformJitter {
  Duration half_width{};
};
/// Normal with mean 0.
struct NormalJitter {
  Duration deviation{};
};
/// Exponential: never early.
struct ExponentialJitter {
  Duration mean{};
};
using JitterConfig = std::variant<NoJitter, UniformJitter, NormalJitter, ExponentialJitter>;

using DelayConfig = std::variant<Duration, Trace<Duration>>;

class Delay {
 public:
  Delay(DelayConfig delay, const JitterConfig& jitter, const Stream& stream)
      : delay_(std::move(delay)), jitter_(jitter), stream_(stream) {}

  /// How long packet number `index`, sent at `sent`, is under way. Never below 0.
  [[nodiscard]] Duration of(std::uint64_t index, Instant sent) const;
  /// No packet is under way for less.
  [[nodiscard]] Duration least() const;

 private:
  [[nodiscard]] Duration jitter(std::uint64_t index) const;

  DelayConfig delay_;
  JitterConfig jitter_;
  Stream stream_;
};

}  // namespace nagi::model
