// SPDX-License-Identifier: Apache-2.0
#include "model/random.hpp"

#include <Random123/philox.h>

#include <bit>
#include <cmath>

namespace nagi::model {

namespace {
using Wide = unsigned __int128;
}

std::uint64_t Stream::draw(std::uint64_t index) const {
  const r123::Philox4x32::ctr_type counter = {
      {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), link_, lane_}};
  const r123::Philox4x32::key_type key = {
      {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)}};
  const auto words = r123::Philox4x32{}(counter, key);
  return (std::uint64_t{words[1]} << 32) | words[0];
}

Chance::Chance(double probability)
    : threshold_(static_cast<Wide>(std::ldexp(static_cast<long double>(probability), 64))) {}

std::uint64_t exponential_q40(std::uint64_t draw) {
  constexpr unsigned fraction_bits = 40;
  constexpr std::uint64_t ln2_q64 = 0xB17217F7D1CF79ABULL;
  if (draw == ~std::uint64_t{0}) return 0;  // u = 1
  const std::uint64_t x = draw + 1;
  const unsigned integer_part = 63U - static_cast<unsigned>(std::countl_zero(x));

  // log2 of the mantissa m in [1, 2), one bit a squaring: m^2 >= 2 means the next bit is 1.
  std::uint64_t mantissa = x << (63U - integer_part);  // Q1.63
  std::uint64_t fraction = 0;
  for (unsigned bit = 0; bit < fraction_bits; ++bit) {
    const Wide square = Wide{mantissa} * mantissa;  // Q2.126
    const bool two_or_more = (square >> 127) != 0;
    mantissa = static_cast<std::uint64_t>(square >> (two_or_more ? 64 : 63));
    fraction = (fraction << 1) | (two_or_more ? 1U : 0U);
  }
  const std::uint64_t log2_u = (std::uint64_t{64} << fraction_bits) -
                               ((std::uint64_t{integer_part} << fraction_bits) | fraction);
  return static_cast<std::uint64_t>((Wide{log2_u} * ln2_q64) >> 64);
}

Duration exponential(std::uint64_t draw, std::uint64_t mean_picoseconds) {
  const Wide picoseconds = (Wide{exponential_q40(draw)} * mean_picoseconds) >> 40;
  return Duration{static_cast<std::int64_t>((picoseconds + 500) / 1000)};
}

}  // namespace nagi::model
