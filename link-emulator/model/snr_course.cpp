// SPDX-License-Identifier: Apache-2.0
#include "model/snr_course.hpp"

#include <algorithm>
#include <cmath>

namespace nagi::model {

namespace {

constexpr double values_per_cycle = 64;
constexpr double instants_per_cycle = 16;
constexpr int max_instants = 64;
constexpr double longest_step_ns = 3.6e12;

Duration grid_step(double seconds) {
  return Duration{static_cast<std::int64_t>(
      std::clamp(seconds / values_per_cycle * 1e9, 1.0, longest_step_ns))};
}

}  // namespace

SnrCourse::SnrCourse(const SnrConfig& config, const ChannelKey& key) : snr_(config.snr_db) {
  for (Step<double>& step : snr_.steps) step.value = power_of_db(step.value);
  if (config.fading.kind != FadingKind::none) {
    fading_.emplace(grid_step(1 / std::max(config.fading.doppler_hz, 1e-9)),
                    FadingAt{fading_sinusoids(config.fading, key, 0, 1.0)});
    if (config.fading.doppler_hz > 0) {
      coherence_ns_ = 1e9 / (instants_per_cycle * config.fading.doppler_hz);
    }
  }
  if (config.shadowing) {
    shadowing_.emplace(grid_step(config.shadowing->decorrelation_s),
                       ShadowingAt{Shadowing(*config.shadowing, key)});
  }
}

double SnrCourse::at(Instant instant) {
  double snr = snr_.steps.size() == 1 ? snr_.steps.front().value : snr_.at(instant).value;
  if (shadowing_) snr *= shadowing_->at(instant);
  if (fading_) {
    const std::complex<double> gain = fading_->at(instant);
    snr *= gain.real() * gain.real() + gain.imag() * gain.imag();
  }
  return snr;
}

int SnrCourse::instants_within(Duration air_time) const {
  if (coherence_ns_ == 0) return 1;
  const double instants = std::ceil(static_cast<double>(air_time.count()) / coherence_ns_);
  return std::clamp(static_cast<int>(std::min(instants, 1e6)), 1, max_instants);
}

}  // namespace nagi::model
