// SPDX-License-Identifier: Apache-2.0
//
// How often a receiver loses packets, by SNR and length, as it was measured: interpolated,
// monotone.
//
// A packet is lost with probability 1 - exp(-E). The exponent E is interpolated: over the SNR in
// decibels as ln E is, which is nearly straight where a packet is lost if one of many bits is, or
// as the probability where a cell has none or all lost; over the length linearly, which is exact
// where bits are lost independently. Below the first and above the last SNR the probability stays.
// Below the shortest length it is that of the shortest; beyond the longest E grows with the length.
// E never falls with the length.
#pragma once

#include <cstdint>
#include <vector>

namespace nagi::model {

/// Packet error rates of packets of one length.
struct LossCurve {
  std::uint64_t packet_bytes = 0;
  std::vector<double> snr_db;  // increasing
  std::vector<double> per;     // one each, not increasing
};

class LossTable {
 public:
  /// `curves`: at least one, by increasing length.
  explicit LossTable(const std::vector<LossCurve>& curves);

  /// E of a packet; `snr` as a ratio of powers. Where it lies between the nodes that the
  /// constructor computed, by operations that IEEE 754 defines to the last bit.
  [[nodiscard]] double exponent(double snr, std::uint64_t packet_bytes) const;

 private:
  struct Row {
    std::uint64_t packet_bytes;
    std::vector<double> exponents;  // at each node
  };
  std::vector<Row> rows_;
  int first_exponent_ = 0;  // binary, of the first node's SNR
};

/// exp(-x) for x from 0, by its series; error below 10^-12.
double exp_of_minus(double x);

}  // namespace nagi::model
