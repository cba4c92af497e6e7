// SPDX-License-Identifier: Apache-2.0
#include "model/random.hpp"

#include <Random123/philox.h>

#include <array>
#include <bit>
#include <cmath>

namespace nagi::model {

namespace {

using Wide = unsigned __int128;

/// A ratio of two polynomials, given by their coefficients from the constant term on.
struct Ratio {
  std::array<double, 8> numerator;
  std::array<double, 8> denominator;

  [[nodiscard]] double at(double x) const {
    double top = 0;
    double bottom = 0;
    for (std::size_t i = numerator.size(); i-- > 0;) {
      top = top * x + numerator[i];
      bottom = bottom * x + denominator[i];
    }
    return top / bottom;
  }
};

// Algorithm AS 241, PPND16: coefficients for |p - 1/2| <= 0.425, and for the tails up to and beyond
// r = 5.
constexpr Ratio centre = {
    {3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
     1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
     3.3430575583588128105e4, 2.5090809287301226727e3},
    {1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
     2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4,
     5.2264952788528545610e3}};
constexpr Ratio tail = {
    {1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
     3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
     2.27238449892691845833e-2, 7.74545014278341407640e-4},
    {1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
     1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
     1.05075007164441684324e-9}};
constexpr Ratio far_tail = {
    {6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
     2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
     2.71155556874348757815e-5, 2.01033439929228813265e-7},
    {1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
     7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
     2.04426310338993978564e-15}};

}  // namespace

std::uint64_t Stream::draw(std::uint64_t index) const {
  const r123::Philox4x32::ctr_type counter = {
      {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), link_, domain_}};
  const r123::Philox4x32::key_type key = {
      {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)}};
  const auto words = r123::Philox4x32{}(counter, key);
  return (std::uint64_t{words[1]} << 32) | words[0];
}

Chance::Chance(double probability)
    : threshold_(static_cast<Wide>(std::ldexp(static_cast<long double>(probability), 64))) {}

Chance Chance::times(std::uint64_t times) const {
  const auto product = [](Wide a, Wide b) {
    if (a == certainty) return b;
    return b == certainty ? a : (a * b) >> 64;
  };
  Wide result = certainty;
  for (Wide power = threshold_; times != 0; times >>= 1) {
    if ((times & 1) != 0) result = product(result, power);
    power = product(power, power);
  }
  return with_threshold(result);
}

std::uint64_t exponential_q40(std::uint64_t draw) {
  constexpr unsigned fraction_bits = 40;
  constexpr std::uint64_t ln2_q64 = 0xB17217F7D1CF79ABULL;
  if (draw == ~std::uint64_t{0}) return 0;  // u = 1
  const std::uint64_t x = draw + 1;
  const unsigned integer_part = 63U - static_cast<unsigned>(std::countl_zero(x));

  // Compute log2 of the mantissa m in [1, 2), one bit per squaring: if m^2 >= 2, the next bit is 1.
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

double standard_normal(std::uint64_t draw) {
  constexpr std::uint64_t half = std::uint64_t{1} << 63;
  const bool above = draw >= half;
  const double q = std::ldexp(
      above ? static_cast<double>(draw - half) + 0.5 : -(static_cast<double>(half - draw) - 0.5),
      -64);  // p - 1/2
  if (q >= -0.425 && q <= 0.425) return q * centre.at(0.180625 - q * q);
  const std::uint64_t tail_draw = above ? ~draw : draw;
  const double r = std::sqrt(std::ldexp(static_cast<double>(exponential_q40(tail_draw)), -40));
  const double distance = r <= 5 ? tail.at(r - 1.6) : far_tail.at(r - 5);
  return above ? distance : -distance;
}

}  // namespace nagi::model
