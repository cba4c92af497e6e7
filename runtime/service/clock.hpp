// SPDX-License-Identifier: Apache-2.0
//
// The conversion between model time and real time. The model's instants count CLOCK_MONOTONIC from
// an epoch, so that steps of the wall clock do not affect packets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/units.hpp"
#include "io/clock.hpp"
#include "io/input_error.hpp"

namespace nagi::runtime {

/// The clock of a program.
class RealTime {
 public:
  /// Set the epoch: the wall-clock time of instant 0. The value 0 means now. Throws InputError if
  /// it does not lie in the last 24 hours.
  explicit RealTime(std::int64_t epoch_realtime_ns) {
    const std::int64_t monotonic = io::read_clock(CLOCK_MONOTONIC);
    const std::int64_t realtime = io::read_clock(CLOCK_REALTIME);
    epoch_realtime_ = epoch_realtime_ns != 0 ? epoch_realtime_ns : realtime;
    const std::int64_t age = realtime - epoch_realtime_;
    if (age < 0 || age > oldest_epoch_ns) {
      throw InputError("epoch_realtime_ns: the epoch must lie in the last 24 hours; it is " +
                       std::to_string(age / 1'000'000'000) + " s ago");
    }
    epoch_monotonic_ = monotonic - age;
  }

  [[nodiscard]] Instant now() const {
    return held_ ? *held_ : from_monotonic(io::read_clock(CLOCK_MONOTONIC));
  }
  /// Make now() return the current instant until the next call. In virtual time the clock stops
  /// while this process runs. So the clock is read only after each sleep, which saves system calls.
  void hold() { held_ = from_monotonic(io::read_clock(CLOCK_MONOTONIC)); }
  [[nodiscard]] Instant from_monotonic(std::int64_t monotonic_ns) const {
    return Instant{Duration{monotonic_ns - epoch_monotonic_}};
  }
  [[nodiscard]] std::int64_t monotonic_ns(Instant instant) const {
    return instant.time_since_epoch().count() + epoch_monotonic_;
  }
  [[nodiscard]] std::int64_t realtime_ns(Instant instant) const {
    return instant.time_since_epoch().count() + epoch_realtime_;
  }
  [[nodiscard]] std::int64_t epoch_realtime_ns() const { return epoch_realtime_; }

 private:
  static constexpr std::int64_t oldest_epoch_ns = 86'400LL * 1'000'000'000;

  std::int64_t epoch_realtime_ = 0;
  std::int64_t epoch_monotonic_ = 0;
  std::optional<Instant> held_;
};

}  // namespace nagi::runtime
