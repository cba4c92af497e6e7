/* SPDX-License-Identifier: Apache-2.0 */
//
// Impairments of samples at the inputs and outputs of a device. Random draws depend on the seed,
// the channel and the number of a sample or burst.
#pragma once

#include <complex>
#include <cstdint>
#include <span>

#include "model/channel_key.hpp"
#include "settings.hpp"

namespace nagi::uhd_double {

using Sample = std::complex<float>;

/// The imbalance of Q relative to I in gain and phase.
class IqImbalance {
 public:
  explicit IqImbalance(const Settings& settings);
  void apply(std::span<Sample> samples) const;

 private:
  float gain_;
  float sine_;
  float cosine_;
};

/// A converter with a full scale of 1 in both I and Q.
class Converter {
 public:
  explicit Converter(unsigned bits);
  /// Quantise and clip `samples`. Return the number of clipped samples.
  std::size_t apply(std::span<Sample> samples) const;

 private:
  float steps_;
};

/// An oscillator whose phase is a Wiener process. Its spectrum is Lorentzian with the given
/// linewidth in Hz.
class PhaseNoise {
 public:
  PhaseNoise(model::ChannelKey key, double linewidth_hz) : key_(key), linewidth_hz_(linewidth_hz) {}
  /// Apply the phase noise. `first` is the number of the first sample. Each call continues the
  /// phase of the previous call.
  void apply(std::span<Sample> samples, std::uint64_t first, double rate_hz);

 private:
  model::ChannelKey key_;
  double linewidth_hz_;
  double cycles_ = 0;
};

/// Add noise of power `power` to each sample. `first` is the number of the first sample.
void add_noise(std::span<Sample> samples, model::ChannelKey key, std::uint64_t first, double power);

/// Return whether the random fault number `fault` occurs in burst or packet number `unit`.
bool fault_occurs(model::ChannelKey key, std::uint32_t fault, std::uint64_t unit,
                  double probability);

}  // namespace nagi::uhd_double
