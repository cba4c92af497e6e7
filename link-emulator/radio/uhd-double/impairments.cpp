/* SPDX-License-Identifier: Apache-2.0 */
#include "impairments.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "model/box_muller.hpp"
#include "model/channel_draw.hpp"

namespace nagi::uhd_double {

using model::channel_draw;
using model::ChannelPurpose;

namespace {

constexpr std::uint32_t faults = 0x80000000U;  // indices of draws that are not noise

}  // namespace

IqImbalance::IqImbalance(const Settings& settings)
    : gain_(static_cast<float>(std::pow(10.0, settings.iq_gain_db / 20))),
      sine_(static_cast<float>(std::sin(settings.iq_phase_deg * std::numbers::pi / 180))),
      cosine_(static_cast<float>(std::cos(settings.iq_phase_deg * std::numbers::pi / 180))) {}

void IqImbalance::apply(std::span<Sample> samples) const {
  if (gain_ == 1.0F && sine_ == 0.0F) return;
  for (Sample& sample : samples) {
    sample = {sample.real(), gain_ * (cosine_ * sample.imag() + sine_ * sample.real())};
  }
}

Converter::Converter(unsigned bits) : steps_(static_cast<float>(1U << (bits - 1))) {}

std::size_t Converter::apply(std::span<Sample> samples) const {
  std::size_t clipped = 0;
  const float largest = steps_ - 1;
  const auto one = [&](float value) {
    return std::clamp(std::nearbyint(value * steps_), -steps_, largest) / steps_;
  };
  for (Sample& sample : samples) {
    const bool is_clipped = std::max(std::abs(sample.real()), std::abs(sample.imag())) > 1.0F;
    clipped += is_clipped ? 1 : 0;
    sample = {one(sample.real()), one(sample.imag())};
  }
  return clipped;
}

void PhaseNoise::apply(std::span<Sample> samples, std::uint64_t first, double rate_hz) {
  if (linewidth_hz_ <= 0) return;
  // The phase is in cycles: a variance of 2 pi linewidth t in rad^2 is linewidth t / (2 pi) in
  // cycles^2.
  const auto power = static_cast<float>(2 * linewidth_hz_ / rate_hz / (2 * std::numbers::pi));
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto words = channel_draw(key_, ChannelPurpose::phase_noise, 0, first + i);
    cycles_ += static_cast<double>(std::sqrt(power * model::minus_log(words[0])) *
                                   model::phasor(words[1]).first);
    cycles_ -= std::floor(cycles_);
    samples[i] *= Sample(std::polar(1.0, 2 * std::numbers::pi * cycles_));
  }
}

/// Add noise to pairs of samples. Each draw gives two samples, one with an even number and one with
/// an odd number.
void add_noise(std::span<Sample> samples, model::ChannelKey key, std::uint64_t first,
               double power) {
  constexpr std::size_t batch = 256;
  std::array<std::uint32_t, batch> lengths;
  std::array<std::uint32_t, batch> angles;
  std::array<Sample, batch> noise;
  const auto each = static_cast<float>(power);
  const std::uint64_t even = first & ~std::uint64_t{1};
  const auto skipped = static_cast<std::size_t>(first - even);
  for (std::size_t from = 0; from < samples.size() + skipped; from += batch) {
    for (std::size_t i = 0; i < batch; i += 2) {
      const auto words = channel_draw(key, ChannelPurpose::noise, 0, (even + from + i) / 2);
      lengths[i] = words[0];
      angles[i] = words[1];
      lengths[i + 1] = words[2];
      angles[i + 1] = words[3];
    }
    for (std::size_t i = 0; i < batch; ++i) {
      const float length = std::sqrt(each * model::minus_log(lengths[i]));
      const auto [x, y] = model::phasor(angles[i]);
      noise[i] = {length * x, length * y};
    }
    for (std::size_t i = 0; i < batch; ++i) {
      const std::size_t index = from + i;
      if (index < skipped || index - skipped >= samples.size()) continue;
      samples[index - skipped] += noise[i];
    }
  }
}

bool fault_occurs(model::ChannelKey key, std::uint32_t fault, std::uint64_t unit,
                  double probability) {
  if (probability <= 0) return false;
  const auto words = channel_draw(key, ChannelPurpose::noise, faults | fault, unit);
  return model::unit_interval(words[0]) < probability;
}

}  // namespace nagi::uhd_double
