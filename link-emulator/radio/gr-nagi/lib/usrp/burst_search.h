/* SPDX-License-Identifier: Apache-2.0 */
//
// Whether and where a burst begins in samples of an antenna, with a bound on false alarms.
//
// The preamble detector proposes; a coherent test decides: the share of the samples' energy that
// lies in the direction of the known preamble, |<p, r>|^2 / (|p|^2 |r|^2), at the frequency offset
// that was estimated. Of N samples of white noise that share exceeds t with probability
// (1 - t)^(N - 1), for one position and one frequency (the square of a sample's correlation
// coefficient: Beta(1, N - 1)). Positions and frequencies that can be told apart bound the rest.
#pragma once

#include <gnuradio/gr_complex.h>

#include <cstddef>
#include <optional>
#include <span>

#include "preamble_detector.h"

namespace gr::nagi {

struct FoundBurst {
  double begin = 0;      // of the preamble: its strongest path, in samples, with a fraction
  double share = 0;      // of the energy, 0 to 1
  double amplitude = 0;  // of the preamble as received over the preamble as sent
  double frequency = 0;  // offset, rad per sample
};

class BurstSearch {
 public:
  /// `max_false_alarms`: probability that noise alone passes among `positions` positions.
  BurstSearch(const PreambleShape& shape, std::size_t positions, double max_false_alarms);

  /// The first burst whose preamble lies in `samples`.
  [[nodiscard]] std::optional<FoundBurst> find(std::span<const gr_complex> samples) const;

  [[nodiscard]] double threshold() const { return threshold_; }
  [[nodiscard]] std::size_t length() const { return shape_.samples.size(); }

  /// A bound on the probability that noise passes a threshold.
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
