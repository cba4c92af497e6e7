/* SPDX-License-Identifier: Apache-2.0 */
//
// Search for the start of a burst in samples of an antenna, with a bound on the probability of
// false alarms.
//
// The preamble detector proposes a position, and a coherent test decides. The test computes the
// share of the samples' energy that lies in the direction of the known preamble, |<p, r>|^2 /
// (|p|^2 |r|^2), at the estimated frequency offset. For N samples of white noise, at one position
// and one frequency, this share exceeds t with probability (1 - t)^(N - 1), because the square of a
// sample correlation coefficient has the distribution Beta(1, N - 1). The number of distinguishable
// positions and frequencies bounds the probability for the whole search.
#pragma once

#include <gnuradio/gr_complex.h>

#include <cstddef>
#include <optional>
#include <span>

#include "preamble_detector.h"

namespace gr::nagi {

struct FoundBurst {
  double begin = 0;      // start of the preamble's strongest path, in samples, with a fraction
  double share = 0;      // share of the energy, 0 to 1
  double amplitude = 0;  // of the preamble as received, relative to the preamble as sent
  double frequency = 0;  // frequency offset, rad per sample
};

class BurstSearch {
 public:
  /// Prepare a search. `max_false_alarms` is the maximum probability that noise alone passes the
  /// test at any of `positions` positions.
  BurstSearch(const PreambleShape& shape, std::size_t positions, double max_false_alarms);

  /// Return the first burst whose preamble lies in `samples`, or nullopt.
  [[nodiscard]] std::optional<FoundBurst> find(std::span<const gr_complex> samples) const;

  [[nodiscard]] double threshold() const { return threshold_; }
  [[nodiscard]] std::size_t length() const { return shape_.samples.size(); }

  /// Return an upper bound on the probability that noise passes `threshold` at any of `positions`
  /// positions.
  static double false_alarms(const PreambleShape& shape, std::size_t positions, double threshold);

 private:
  [[nodiscard]] std::optional<FoundBurst> test(std::span<const gr_complex> samples,
                                               const Detection& proposed) const;

  PreambleShape shape_;
  PreambleDetector detector_;
  double energy_;  // of the preamble
  double threshold_;
};

}  // namespace gr::nagi
