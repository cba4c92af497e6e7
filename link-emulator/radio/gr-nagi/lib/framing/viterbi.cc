/* SPDX-License-Identifier: Apache-2.0 */
#include "viterbi.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace gr::nagi {

// A state is the previous 6 bits, of which the newest is the most significant. State s and bit b
// send the parities of (b << 6 | s) & polynomial and lead to state b << 5 | s >> 1. Both
// polynomials include the newest and the oldest bit. States 2j and 2j + 1 therefore send opposite
// bits for the same bit b, and a state sends opposite bits for b = 0 and b = 1.

Viterbi::Viterbi() {
  for (unsigned j = 0; j < states / 2; ++j) {
    for (std::size_t i = 0; i < 2; ++i) {
      signs_[j][i] = std::popcount(2 * j & polynomials[i]) % 2 != 0 ? 1 : -1;
    }
  }
}

std::vector<std::uint8_t> Viterbi::decode(std::span<const std::int8_t> coded) {
  const std::size_t steps = coded.size() / 2;
  if (steps <= memory) return {};
  survivors_.resize(steps);
  constexpr std::int32_t unreachable = std::numeric_limits<std::int32_t>::min() / 2;
  std::array<std::int32_t, states> metrics;
  metrics.fill(unreachable);
  metrics[0] = 0;
  std::array<std::int32_t, states> next;
  for (std::size_t step = 0; step < steps; ++step) {
    const std::int32_t first = coded[2 * step];
    const std::int32_t second = coded[2 * step + 1];
    std::uint64_t survivors = 0;
    for (std::size_t j = 0; j < states / 2; ++j) {
      const std::int32_t agreement = signs_[j][0] * first + signs_[j][1] * second;
      const std::int32_t even = metrics[2 * j];
      const std::int32_t odd = metrics[2 * j + 1];
      const bool zero_from_odd = odd - agreement > even + agreement;
      const bool one_from_odd = odd + agreement > even - agreement;
      next[j] = std::max(even + agreement, odd - agreement);
      next[j + states / 2] = std::max(even - agreement, odd + agreement);
      survivors |= std::uint64_t{zero_from_odd} << j | std::uint64_t{one_from_odd}
                                                           << (j + states / 2);
    }
    survivors_[step] = survivors;
    metrics = next;
  }
  std::vector<std::uint8_t> bits(steps);
  std::size_t state = 0;  // the 6 zeros at the end lead to state 0
  for (std::size_t step = steps; step-- > 0;) {
    bits[step] = static_cast<std::uint8_t>(state >> (memory - 1));
    state = (state << 1 & (states - 1)) | (survivors_[step] >> state & 1);
  }
  bits.resize(steps - memory);
  return bits;
}

}  // namespace gr::nagi
