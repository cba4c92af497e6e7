// SPDX-License-Identifier: Apache-2.0
//
// Fading and shadowing as sums of sinusoids. The gain is a function of absolute time, seed and
// channel, so it can be evaluated in any order. gr-nagi's channel applies it to waveforms, the loss
// model `sdr` to the SNR of each transmission.
//
// Except for conversions from decibels, all operations have results that IEEE 754 defines to the
// last bit. So every machine computes the same gains.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "base/units.hpp"
#include "model/channel_draw.hpp"

namespace nagi::model {

enum class FadingKind : std::uint8_t { none, rayleigh, rician };

struct FadingConfig {
  FadingKind kind = FadingKind::none;
  double doppler_hz = 0;   // maximum Doppler shift
  double k_factor_db = 0;  // Rician: ratio of the line-of-sight power to the scattered power
};

struct Sinusoid {
  double frequency_hz = 0;
  double phase_cycles = 0;
  double amplitude = 0;
};

/// Return exp(2 pi i cycles), with an error below 10^-15.
std::complex<double> phasor(double cycles);

/// Return the gain of one path: 32 sinusoids with random phases and angles of arrival (Xiao, Zheng
/// and Beaulieu, "Novel sum-of-sinusoids simulation models for Rayleigh and Rician fading
/// channels", IEEE Trans. Wireless Comm. 5(12), 2006). The gain has the mean power `power` and, on
/// average over seeds, the autocorrelation J0(2 pi doppler tau). `path` is the number of the path.
/// With Rician fading, path 0 also has a line of sight, which arrives at 45 degrees. Without fading
/// the gain is constant; the phases of all paths except path 0 are random.
std::vector<Sinusoid> fading_sinusoids(const FadingConfig& config, const ChannelKey& key,
                                       std::uint32_t path, double power);

/// Return the sum of sinusoids at a time in seconds.
std::complex<double> sum_at(const std::vector<Sinusoid>& sinusoids, double time_s);

/// Log-normal shadowing: a gain in decibels, normal with mean 0, whose correlation in time is
/// exp(-|t| / decorrelation) (Gudmundson, "Correlation model for shadow fading in mobile radio
/// systems", Electronics Letters 27(23), 1991). It is the sum of 64 sinusoids whose frequencies
/// follow the spectrum of that process, a Lorentzian (Cai and Giannakis, "A two-dimensional channel
/// simulation model for shadowing processes", IEEE Trans. Veh. Tech. 52(6), 2003).
struct ShadowingConfig {
  double deviation_db = 0;
  double decorrelation_s = 1;
};

class Shadowing {
 public:
  Shadowing(const ShadowingConfig& config, const ChannelKey& key);
  /// Return the gain in dB at a time in seconds.
  [[nodiscard]] double gain_db(double time_s) const;

 private:
  std::vector<Sinusoid> sinusoids_;
};

/// Convert decibels to a ratio of powers.
double power_of_db(double db);

}  // namespace nagi::model
