// SPDX-License-Identifier: Apache-2.0
//
// Measured packet error rates of a receiver over SNR and packet length, interpolated monotonically.
//
// A packet is lost with probability 1 - exp(-E). The table interpolates the exponent E as follows:
// - Over the SNR in decibels: ln E is interpolated linearly, because it is nearly linear if each of
//   many bits may be lost. Next to a point with error rate 0 or 1, the probability is interpolated
//   instead. Below the first and above the last SNR, the probability is constant.
// - Over the length: E is interpolated linearly, which is exact if bits are lost independently.
//   Below the shortest length, E is constant; above the longest, E is proportional to the length. E
//   never decreases with the length.
#pragma once

#include <cstdint>
#include <vector>

namespace nagi::model {

/// Packet error rates of packets of one length.
struct LossCurve {
  std::uint64_t packet_bytes = 0;
  std::vector<double> snr_db;  // increasing
  std::vector<double> per;     // packet error rate at each SNR, not increasing
};

/// A table of packet error rates.
class LossTable {
 public:
  /// Create the table from at least one curve, in the order of increasing lengths.
  explicit LossTable(const std::vector<LossCurve>& curves);

  /// Return E of a packet; `snr` is a ratio of powers. The interpolation between the nodes uses
  /// only operations that IEEE 754 defines to the last bit.
  [[nodiscard]] double exponent(double snr, std::uint64_t packet_bytes) const;

 private:
  struct Row {
    std::uint64_t packet_bytes;
    std::vector<double> exponents;  // E at each node; nodes divide each octave of the SNR
  };
  std::vector<Row> rows_;
  int first_exponent_ = 0;  // binary exponent of the first node's SNR
};

/// Return exp(-x) for x >= 0, computed by its series; the error is below 10^-12.
double exp_of_minus(double x);

}  // namespace nagi::model
