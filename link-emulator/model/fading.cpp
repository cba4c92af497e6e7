// SPDX-License-Identifier: Apache-2.0
#include "model/fading.hpp"

#include <cmath>
#include <numbers>

namespace nagi::model {

namespace {

constexpr std::uint32_t sinusoids_per_path = 32;
constexpr std::uint32_t shadowing_sinusoids = 64;
constexpr std::uint32_t line_of_sight = 0xffffffff;  // in place of a sinusoid's index

}  // namespace

double power_of_db(double db) { return std::pow(10.0, db / 10.0); }

/// Compute the series here, because libraries round sines differently on different processors.
std::complex<double> phasor(double cycles) {
  const double quarters = std::nearbyint(4.0 * cycles);
  const double x = 2.0 * std::numbers::pi * (cycles - quarters / 4.0);  // within pi / 4
  const double square = x * x;
  double sine = 0.0;
  double cosine = 0.0;
  for (int n = 17; n >= 1; n -= 2) {
    cosine = 1.0 - square / (n * (n + 1)) * cosine;
    sine = 1.0 - square / ((n + 1) * (n + 2)) * sine;
  }
  // The loop begins with the innermost terms, so both series are complete to x^16.
  sine *= x;
  switch (static_cast<std::int64_t>(quarters) & 3) {
    case 0:
      return {cosine, sine};
    case 1:
      return {-sine, cosine};
    case 2:
      return {-cosine, -sine};
    default:
      return {sine, -cosine};
  }
}

std::vector<Sinusoid> fading_sinusoids(const FadingConfig& config, const ChannelKey& key,
                                       std::uint32_t path, double power) {
  const ChannelWords direct = channel_draw(key, ChannelPurpose::fading, line_of_sight, path);
  if (config.kind == FadingKind::none) {
    return {{0.0, path == 0 ? 0.0 : unit_interval(direct[0]), std::sqrt(power)}};
  }
  std::vector<Sinusoid> sinusoids;
  double scattered = power;
  if (config.kind == FadingKind::rician && path == 0) {
    const double k = power_of_db(config.k_factor_db);
    scattered = power / (k + 1.0);
    sinusoids.push_back({config.doppler_hz * std::numbers::sqrt2 / 2.0, unit_interval(direct[0]),
                         std::sqrt(power * k / (k + 1.0))});
  }
  for (std::uint32_t n = 0; n < sinusoids_per_path; ++n) {
    const ChannelWords random = channel_draw(key, ChannelPurpose::fading, n, path);
    const double angle_cycles = (n + unit_interval(random[1]) - 0.5) / sinusoids_per_path;
    sinusoids.push_back({config.doppler_hz * phasor(angle_cycles).real(), unit_interval(random[0]),
                         std::sqrt(scattered / sinusoids_per_path)});
  }
  return sinusoids;
}

std::complex<double> sum_at(const std::vector<Sinusoid>& sinusoids, double time_s) {
  std::complex<double> sum = 0.0;
  for (const Sinusoid& one : sinusoids) {
    sum += one.amplitude * phasor(one.frequency_hz * time_s + one.phase_cycles);
  }
  return sum;
}

Shadowing::Shadowing(const ShadowingConfig& config, const ChannelKey& key) {
  for (std::uint32_t n = 0; n < shadowing_sinusoids; ++n) {
    const ChannelWords random = channel_draw(key, ChannelPurpose::shadowing, n, 0);
    // The frequency is the quantile of a Cauchy distribution at (n + u) / 64 of its positive half.
    // The code computes it as sine over cosine, because both are equal on all machines. The added
    // half step of the word keeps the quotient finite.
    const double quantile =
        (n + unit_interval(random[1]) + 0x1p-33) / shadowing_sinusoids / 4.0;  // cycles
    const std::complex<double> turn = phasor(quantile);
    const double tangent = turn.imag() / turn.real();
    sinusoids_.push_back({tangent / (2.0 * std::numbers::pi * config.decorrelation_s),
                          unit_interval(random[0]),
                          config.deviation_db * std::sqrt(2.0 / shadowing_sinusoids)});
  }
}

double Shadowing::gain_db(double time_s) const { return sum_at(sinusoids_, time_s).real(); }

}  // namespace nagi::model
