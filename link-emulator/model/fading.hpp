// SPDX-License-Identifier: Apache-2.0
//
// Fading and shadowing as functions of absolute time, of seed and channel: sums of sinusoids, which
// can be asked for in any order. gr-nagi's channel applies them to waveforms, the loss model `sdr`
// to the SNR of each transmission.
//
// But for decibels, they are computed by operations that IEEE 754 defines to the last bit, so that
// every machine makes the same of them.
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
  double doppler_hz = 0;   // the greatest Doppler shift
  double k_factor_db = 0;  // Rician: power of the line of sight over that of the rest
};

struct Sinusoid {
  double frequency_hz = 0;
  double phase_cycles = 0;
  double amplitude = 0;
};

/// exp(2 pi i cycles); error below 10^-15.
std::complex<double> phasor(double cycles);

/// The gain of one path: 32 sinusoids with random phases and angles of arrival (Xiao, Zheng and
/// Beaulieu, "Novel sum-of-sinusoids simulation models for Rayleigh and Rician fading channels",
/// IEEE Trans. Wireless Comm. 5(12), 2006). Its mean power is `power`, its autocorrelation J0(2 pi
/// doppler tau) on average over seeds. If Rician, path 0 also has a line of sight, which comes in
/// at 45 degrees. Without fading the gain is constant; the phases of all but path 0 are random.
std::vector<Sinusoid> fading_sinusoids(const FadingConfig& config, const ChannelKey& key,
                                       std::uint32_t path, double power);

/// The sum of sinusoids at an instant.
std::complex<double> sum_at(const std::vector<Sinusoid>& sinusoids, double time_s);

/// Log-normal shadowing: a gain in decibels, normal with mean 0, whose correlation in time is
/// exp(-|t| / decorrelation) (Gudmundson, "Correlation model for shadow fading in mobile radio
/// systems", Electronics Letters 27(23), 1991). 64 sinusoids, whose frequencies have that process's
/// spectrum, a Lorentzian (Cai and Giannakis, "A two-dimensional channel simulation model for
/// shadowing processes", IEEE Trans. Veh. Tech. 52(6), 2003).
struct ShadowingConfig {
  double deviation_db = 0;
  double decorrelation_s = 1;
};

class Shadowing {
 public:
  Shadowing(const ShadowingConfig& config, const ChannelKey& key);
  /// In dB.
  [[nodiscard]] double gain_db(double time_s) const;

 private:
  std::vector<Sinusoid> sinusoids_;
};

double power_of_db(double db);

}  // namespace nagi::model
