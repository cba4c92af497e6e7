// SPDX-License-Identifier: Apache-2.0
//
// The SNR of a single-path channel over time: a constant or a trace, times shadowing, times fading.
// Shadowing and fading are equal to those that gr-nagi's channel applies to waveforms with the same
// seed and channel number.
//
// Gains are computed on a grid with 64 points per 1/doppler, or per decorrelation time, and
// interpolated linearly in between. The grid begins at time 0, so the SNR depends only on the
// instant.
#pragma once

#include <complex>
#include <optional>

#include "model/fading.hpp"
#include "model/trace.hpp"

namespace nagi::model {

struct SnrConfig {
  Trace<double> snr_db{{{Duration{0}, 0.0}}, Duration{1}};
  FadingConfig fading;
  std::optional<ShadowingConfig> shadowing;
};

/// The SNR of one channel as a function of time.
class SnrCourse {
 public:
  SnrCourse(const SnrConfig& config, const ChannelKey& key);

  /// Return the SNR at an instant, as a ratio of powers.
  [[nodiscard]] double at(Instant instant);

  /// Return the number of instants at which to evaluate the SNR within a transmission, so that the
  /// gain hardly changes between them.
  [[nodiscard]] int instants_within(Duration air_time) const;

 private:
  /// A function of time on a grid. It stores the values at the two grid points around the last
  /// instant.
  template <class Value, class Function>
  class Grid {
   public:
    Grid(Duration step, Function function) : step_(step), function_(std::move(function)) {}
    Value at(Instant instant) {
      const std::int64_t ns = instant.time_since_epoch().count();
      if (cell_ < 0 || ns < from_ || ns >= to_) move(ns);
      const double fraction = static_cast<double>(ns - from_) / static_cast<double>(step_.count());
      return low_ + fraction * (high_ - low_);
    }

   private:
    void move(std::int64_t ns) {
      const std::int64_t cell = ns / step_.count();
      low_ = cell_ >= 0 && cell == cell_ + 1 ? high_ : value(cell);
      high_ = value(cell + 1);
      cell_ = cell;
      from_ = cell * step_.count();
      to_ = from_ + step_.count();
    }
    Value value(std::int64_t cell) const {
      return function_(static_cast<double>(cell) * (static_cast<double>(step_.count()) * 1e-9));
    }

    Duration step_;
    Function function_;
    std::int64_t cell_ = -1;
    std::int64_t from_ = 0;
    std::int64_t to_ = 0;
    Value low_{};
    Value high_{};
  };
  struct FadingAt {
    std::vector<Sinusoid> sinusoids;
    std::complex<double> operator()(double time_s) const { return sum_at(sinusoids, time_s); }
  };
  struct ShadowingAt {
    Shadowing shadowing;
    double operator()(double time_s) const { return power_of_db(shadowing.gain_db(time_s)); }
  };

  Trace<double> snr_;  // ratios of powers
  std::optional<Grid<std::complex<double>, FadingAt>> fading_;
  std::optional<Grid<double, ShadowingAt>> shadowing_;
  double coherence_ns_ = 0;  // a sixteenth of 1 / doppler; 0 if the gain is constant
};

}  // namespace nagi::model
