/* SPDX-License-Identifier: Apache-2.0 */
//
// What inputs and outputs of a device do to samples. Draws follow from seed, channel and the number
// of a sample or burst.
#pragma once

#include <complex>
#include <cstdint>
#include <span>

#include "model/channel_key.hpp"
#include "settings.hpp"

namespace nagi::uhd_double {

using Sample = std::complex<float>;

/// Gain and phase of Q against I.
class IqImbalance {
 public:
  explicit IqImbalance(const Settings& settings);
  void apply(std::span<Sample> samples) const;

 private:
  float gain_;
  float sine_;
  float cosine_;
};

/// A converter: full scale is 1, in I and Q alike.
class Converter {
 public:
  explicit Converter(unsigned bits);
  /// Quantises and clips; returns how many samples were clipped.
  std::size_t apply(std::span<Sample> samples) const;

 private:
  float steps_;
};

/// An oscillator whose phase walks (Wiener): its spectrum is Lorentzian, of that linewidth.
class PhaseNoise {
 public:
  PhaseNoise(model::ChannelKey key, double linewidth_hz) : key_(key), linewidth_hz_(linewidth_hz) {}
  /// `first`: number of the first sample; calls go on from each other.
  void apply(std::span<Sample> samples, std::uint64_t first, double rate_hz);

 private:
  model::ChannelKey key_;
  double linewidth_hz_;
  double cycles_ = 0;
};

/// Adds noise of `power` a sample. `first`: number of the first sample.
void add_noise(std::span<Sample> samples, model::ChannelKey key, std::uint64_t first, double power);

/// Whether something of that probability befalls `which`.
bool befalls(model::ChannelKey key, std::uint32_t what, std::uint64_t which, double probability);

}  // namespace nagi::uhd_double
