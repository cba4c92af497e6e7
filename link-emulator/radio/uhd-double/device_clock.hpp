/* SPDX-License-Identifier: Apache-2.0 */
//
// The time of a device by its own oscillator. CLOCK_MONOTONIC represents true time. In a guest with
// virtual time, the device's time is virtual as well.
#pragma once

#include <cmath>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <uhd/types/time_spec.hpp>

namespace nagi::uhd_double {

/// Return CLOCK_MONOTONIC in ns.
inline std::int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

/// An instant of CLOCK_MONOTONIC in ns, with a fraction. Differences between instants are exact to
/// 10^-15 s.
struct Instant {
  std::int64_t ns = 0;
  double fraction = 0;  // fraction of a ns

  [[nodiscard]] double seconds_since(const Instant& other) const {
    return static_cast<double>(ns - other.ns) * 1e-9 + (fraction - other.fraction) * 1e-9;
  }
};

class DeviceClock {
 public:
  DeviceClock(double offset_ppm, double drift_ppm_s)
      : rate_(1 + offset_ppm * 1e-6), drift_(drift_ppm_s * 1e-6), origin_ns_(monotonic_ns()) {}

  [[nodiscard]] uhd::time_spec_t now() const { return at(monotonic_ns()); }
  [[nodiscard]] uhd::time_spec_t at(std::int64_t ns) const {
    const std::lock_guard lock(mutex_);
    const std::int64_t passed = ns - origin_ns_;
    const double s = static_cast<double>(passed) * 1e-9;
    // Whole seconds and their rest are added separately, so that a clock without a frequency error
    // has no rounding error.
    return set_ +
           uhd::time_spec_t(static_cast<time_t>(passed / 1'000'000'000),
                            static_cast<double>(passed % 1'000'000'000) * 1e-9) +
           uhd::time_spec_t(error_s(s));
  }
  /// Return the instant at which the device's time is `time`.
  [[nodiscard]] Instant instant(const uhd::time_spec_t& time) const {
    const std::lock_guard lock(mutex_);
    const uhd::time_spec_t shown = time - set_;
    const double total_s = shown.get_real_secs();
    double ahead_s = 0;
    for (int round = 0; round < 3; ++round) ahead_s = error_s(total_s - ahead_s);
    const double rest_ns = (shown.get_frac_secs() - ahead_s) * 1e9;
    const double whole_ns = std::floor(rest_ns);
    return {origin_ns_ + static_cast<std::int64_t>(shown.get_full_secs()) * 1'000'000'000 +
                static_cast<std::int64_t>(whole_ns),
            rest_ns - whole_ns};
  }
  /// Set the device's time to `time` now.
  void set(const uhd::time_spec_t& time) { set_at(monotonic_ns(), time); }
  /// Set the device's time to `time` at the next pulse per second. A pulse occurs when a second of
  /// CLOCK_MONOTONIC begins.
  void set_at_next_pulse(const uhd::time_spec_t& time) { set_at(last_pulse_ns() + pulse_ns, time); }
  [[nodiscard]] uhd::time_spec_t at_last_pulse() const { return at(last_pulse_ns()); }
  /// Follow a reference without an error from now on, or run freely again.
  void follow_reference(bool follow) {
    const std::int64_t ns = monotonic_ns();
    const uhd::time_spec_t time = at(ns);
    set_at(ns, time);
    const std::lock_guard lock(mutex_);
    follows_ = follow;
  }
  /// Return the current ratio of the device's frequencies to their nominal values.
  [[nodiscard]] double factor() const {
    const std::lock_guard lock(mutex_);
    if (follows_) return 1;
    return rate_ + drift_ * static_cast<double>(monotonic_ns() - origin_ns_) * 1e-9;
  }

 private:
  static constexpr std::int64_t pulse_ns = 1'000'000'000;

  static std::int64_t last_pulse_ns() { return monotonic_ns() / pulse_ns * pulse_ns; }
  void set_at(std::int64_t ns, const uhd::time_spec_t& time) {
    const std::lock_guard lock(mutex_);
    origin_ns_ = ns;
    set_ = time;
  }
  /// Return the time, in seconds, by which the clock is ahead after `s` seconds.
  [[nodiscard]] double error_s(double s) const {
    return follows_ ? 0 : (rate_ - 1) * s + 0.5 * drift_ * s * s;
  }

  mutable std::mutex mutex_;
  double rate_;
  double drift_;  // of the rate, per second
  std::int64_t origin_ns_;
  bool follows_ = false;
  uhd::time_spec_t set_{0.0};
};

}  // namespace nagi::uhd_double
