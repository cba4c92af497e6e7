// SPDX-License-Identifier: Apache-2.0
//
// Complex Gaussian noise from random words, after Box and Muller (1958): sqrt(power x
// minus_log(word)) is the magnitude, phasor(word) the direction. Logarithm and exp(2 pi i x) are
// computed by their series, because libraries round them differently on different processors.
#pragma once

#include <bit>
#include <cstdint>
#include <numbers>
#include <utility>

namespace nagi::model {

/// Return -ln((word + 1/2) / 2^32) in single precision. The function has no branches, so that
/// compilers vectorise loops over it.
inline float minus_log(std::uint32_t word) {
  const float x = static_cast<float>(static_cast<std::int32_t>(word >> 1)) + 0.25F;  // / 2^31
  const auto bits = std::bit_cast<std::int32_t>(x);
  constexpr std::int32_t root_half = 0x3f3504f3;  // mantissas from sqrt(1/2) to sqrt(2)
  const std::int32_t exponent = (bits - root_half) >> 23;
  const float mantissa = std::bit_cast<float>(bits - exponent * (1 << 23));
  const float s = (mantissa - 1.0F) / (mantissa + 1.0F);
  const float square = s * s;
  const float series =
      2.0F + square * (2.0F / 3 + square * (2.0F / 5 + square * (2.0F / 7 + square * (2.0F / 9))));
  return static_cast<float>(31 - exponent) * std::numbers::ln2_v<float> - s * series;
}

/// Return exp(2 pi i word / 2^32) as its real and imaginary part, in single precision.
inline std::pair<float, float> phasor(std::uint32_t word) {
  // `rest` is the signed distance from the nearest multiple of a quarter turn, at most pi / 4. The
  // two highest bits of `turned` number that quarter.
  const auto turned = static_cast<std::int32_t>(word + 0x20000000U);
  const auto rest =
      static_cast<std::int32_t>(static_cast<std::uint32_t>(turned) & 0x3fffffffU) - 0x20000000;
  const float x = static_cast<float>(rest) * (2.0F * std::numbers::pi_v<float> / 4294967296.0F);
  const float square = x * x;
  const float sine =
      x * (1 + square * (-1.0F / 6 + square * (1.0F / 120 + square * (-1.0F / 5040))));
  const float cosine =
      1 + square * (-1.0F / 2 + square * (1.0F / 24 + square * (-1.0F / 720 + square / 40320)));
  const bool swap = (turned & 0x40000000) != 0;
  const float real = swap ? sine : cosine;
  const float imaginary = swap ? cosine : sine;
  const float real_sign =
      ((turned ^ (turned << 1)) & static_cast<std::int32_t>(0x80000000)) != 0 ? -1.0F : 1.0F;
  const float imaginary_sign = turned < 0 ? -1.0F : 1.0F;
  return {real_sign * real, imaginary_sign * imaginary};
}

}  // namespace nagi::model
