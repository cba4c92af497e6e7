/* SPDX-License-Identifier: Apache-2.0 */
//
// The time of a device: that of its own oscillator, beside CLOCK_MONOTONIC, which stands for the
// time of the world. In a guest with virtual time it is virtual, too.
#pragma once

#include <cmath>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <uhd/types/time_spec.hpp>

namespace nagi::uhd_double {

/// CLOCK_MONOTONIC in ns.
inline std::int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

/// ns of CLOCK_MONOTONIC, with a fraction. Differences of such instants are exact to 10^-15 s.
struct Instant {
  std::int64_t ns = 0;
  double fraction = 0;  // of a ns

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
    // Whole and rest apart: a clock without an error shall have none.
    return set_ +
           uhd::time_spec_t(static_cast<time_t>(passed / 1'000'000'000),
                            static_cast<double>(passed % 1'000'000'000) * 1e-9) +
           uhd::time_spec_t(error_s(s));
  }
  /// When it is `time` there.
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
  /// It shows `time` at this instant.
  void set(const uhd::time_spec_t& time) { set_at(monotonic_ns(), time); }
  /// It will at the next pulse per second, which comes when a second of CLOCK_MONOTONIC begins.
  void set_at_next_pulse(const uhd::time_spec_t& time) { set_at(last_pulse_ns() + pulse_ns, time); }
  [[nodiscard]] uhd::time_spec_t at_last_pulse() const { return at(last_pulse_ns()); }
  /// From now on it runs with a reference without an error, or by itself again.
  void follow_reference(bool follow) {
    const std::int64_t ns = monotonic_ns();
    const uhd::time_spec_t time = at(ns);
    set_at(ns, time);
    const std::lock_guard lock(mutex_);
    follows_ = follow;
  }
  /// Its carriers and samples are that much too fast, now.
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
  /// By which it is ahead after `s` seconds.
  [[nodiscard]] double error_s(double s) const {
    return follows_ ? 0 : (rate_ - 1) * s + 0.5 * drift_ * s * s;
  }

  mutable std::mutex mutex_;
  double rate_;
  double drift_;  // of the rate, a second
  std::int64_t origin_ns_;
  bool follows_ = false;
  uhd::time_spec_t set_{0.0};
};

}  // namespace nagi::uhd_double
