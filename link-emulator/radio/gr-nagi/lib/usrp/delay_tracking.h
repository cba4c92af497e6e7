/* SPDX-License-Identifier: Apache-2.0 */
//
// Tracking of the delay, in samples, from the start of a burst at the transmitter to its start at
// the receiver. With a common clock, the delay is constant. Without a common clock, the delay
// drifts, and each burst that is found corrects the estimate.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>

namespace gr::nagi {

class DelayTracking {
 public:
  explicit DelayTracking(bool common_clock) : common_clock_(common_clock) {}

  /// Initialise the delay and its drift from probes, given as pairs (start at the transmitter,
  /// delay). A line is fitted through the probes by least squares.
  void begin(std::span<const std::pair<std::int64_t, double>> probes) {
    double mean_x = 0;
    double mean_y = 0;
    const auto count = static_cast<double>(probes.size());
    const std::int64_t origin = probes.front().first;
    for (const auto& [at, delay] : probes) {
      mean_x += static_cast<double>(at - origin) / count;
      mean_y += delay / count;
    }
    double above = 0;
    double below = 0;
    for (const auto& [at, delay] : probes) {
      const double x = static_cast<double>(at - origin) - mean_x;
      above += x * (delay - mean_y);
      below += x * x;
    }
    at_ = origin + static_cast<std::int64_t>(std::llround(mean_x));
    delay_ = common_clock_ ? std::round(mean_y) : mean_y;
    drift_ = common_clock_ || below == 0 ? 0 : above / below;
    misses_ = 0;
  }

  [[nodiscard]] double delay(std::int64_t begin) const {
    return delay_ + drift_ * static_cast<double>(begin - at_);
  }
  /// Return the margin around delay(), in samples, within which the true delay lies.
  [[nodiscard]] std::size_t margin(std::int64_t begin) const {
    if (common_clock_) return common_margin;
    const double idle =
        uncertain_drift * static_cast<double>(std::max<std::int64_t>(0, begin - at_));
    return std::min(max_margin, own_margin + static_cast<std::size_t>(idle) + misses_ * per_miss);
  }
  /// Update the delay and its drift from a burst that began at `begin` and was found with the delay
  /// `delay_found`.
  void found(std::int64_t begin, double delay_found) {
    misses_ = 0;
    if (common_clock_) return;
    const double passed = static_cast<double>(begin - at_);
    const double predicted = delay(begin);
    const double error = delay_found - predicted;
    delay_ = predicted + delay_gain * error;
    at_ = begin;
    if (passed > 0) {
      drift_ += drift_gain * error / std::max(passed, least_passed);
    }
  }
  void missed() { ++misses_; }
  [[nodiscard]] double drift() const { return drift_; }

 private:
  static constexpr std::size_t common_margin = 8;
  static constexpr std::size_t own_margin = 32;
  static constexpr std::size_t per_miss = 2;
  static constexpr std::size_t max_margin = 4096;
  static constexpr double uncertain_drift = 2e-6;
  static constexpr double delay_gain = 0.3;
  static constexpr double drift_gain = 0.02;
  static constexpr double least_passed = 4000;

  bool common_clock_;
  std::int64_t at_ = 0;
  double delay_ = 0;
  double drift_ = 0;  // samples per sample
  std::size_t misses_ = 0;
};

}  // namespace gr::nagi
