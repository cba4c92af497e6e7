// SPDX-License-Identifier: Apache-2.0
//
// The one place where model time meets real time. The model's instants are CLOCK_MONOTONIC since an
// epoch, so that a step of the wall clock moves no packet; frames carry CLOCK_REALTIME stamps,
// which are brought over with the difference of the two clocks at the moment.
#pragma once

#include <cstdint>
#include <ctime>

#include "model/units.hpp"

namespace nagi::daemon {

inline std::int64_t read_clock(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

class RealTime {
 public:
  /// `epoch_realtime_ns`: the wall-clock time of instant 0; 0 means now.
  explicit RealTime(std::int64_t epoch_realtime_ns) {
    refresh();
    epoch_realtime_ = epoch_realtime_ns != 0 ? epoch_realtime_ns : read_clock(CLOCK_REALTIME);
    epoch_monotonic_ = epoch_realtime_ - realtime_ahead_;
  }

  [[nodiscard]] model::Instant now() const {
    return model::Instant{model::Duration{read_clock(CLOCK_MONOTONIC) - epoch_monotonic_}};
  }
  /// Notes how far the wall clock is ahead at the moment.
  void refresh() { realtime_ahead_ = read_clock(CLOCK_REALTIME) - read_clock(CLOCK_MONOTONIC); }
  [[nodiscard]] model::Instant from_realtime(std::int64_t realtime_ns) const {
    return model::Instant{model::Duration{realtime_ns - realtime_ahead_ - epoch_monotonic_}};
  }
  [[nodiscard]] std::int64_t monotonic_ns(model::Instant instant) const {
    return instant.time_since_epoch().count() + epoch_monotonic_;
  }
  [[nodiscard]] std::int64_t epoch_realtime_ns() const { return epoch_realtime_; }

 private:
  std::int64_t realtime_ahead_ = 0;
  std::int64_t epoch_realtime_ = 0;
  std::int64_t epoch_monotonic_ = 0;
};

}  // namespace nagi::daemon
