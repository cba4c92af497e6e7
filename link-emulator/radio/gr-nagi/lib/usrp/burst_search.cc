/* SPDX-License-Identifier: Apache-2.0 */
#include "burst_search.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace gr::nagi {

namespace {

/// Return the number of frequencies within the detector's range at which noise is independent. The
/// detector finds offsets within half a turn per lag. A preamble resolves frequencies that are 1 /
/// its length apart. The number is doubled, because the estimate need not lie on this grid.
double frequencies(const PreambleShape& shape) {
  const auto length = static_cast<double>(shape.samples.size());
  return std::max(1.0, 2 * length / static_cast<double>(shape.repeat_lag));
}

}  // namespace

double BurstSearch::false_alarms(const PreambleShape& shape, std::size_t positions,
                                 double threshold) {
  const auto length = static_cast<double>(shape.samples.size());
  return std::min(1.0, static_cast<double>(positions) * frequencies(shape) *
                           std::pow(1 - threshold, length - 1));
}

BurstSearch::BurstSearch(const PreambleShape& shape, std::size_t positions, double max_false_alarms)
    : shape_(shape), detector_(shape), energy_(0) {
  if (!(max_false_alarms > 0 && max_false_alarms <= 1) || positions == 0) {
    throw std::invalid_argument(
        "BurstSearch: positions must be at least 1, and max_false_alarms above 0 and at most 1");
  }
  for (const gr_complex& sample : shape.samples) energy_ += std::norm(sample);
  const auto length = static_cast<double>(shape.samples.size());
  const double max_per_position =
      max_false_alarms / (static_cast<double>(positions) * frequencies(shape));
  threshold_ = max_per_position >= 1 ? 0 : 1 - std::pow(max_per_position, 1 / (length - 1));
}

std::optional<FoundBurst> BurstSearch::find(std::span<const gr_complex> samples) const {
  // A proposal of the detector may be noise. The search then continues after the proposal.
  std::size_t from = 0;
  while (from + length() <= samples.size()) {
    const auto proposed = detector_.detect(samples.subspan(from));
    if (!proposed) return std::nullopt;
    if (auto found = test(samples.subspan(from), *proposed)) {
      found->begin += static_cast<double>(from);
      return found;
    }
    const auto step = std::max<std::ptrdiff_t>(
        proposed->peak + static_cast<std::ptrdiff_t>(shape_.repeat_begin + 1), 1);
    from += std::min(static_cast<std::size_t>(step), samples.size());
  }
  return std::nullopt;
}

std::optional<FoundBurst> BurstSearch::test(std::span<const gr_complex> samples,
                                            const Detection& proposed) const {
  std::complex<double> sum;
  double energy = 0;
  for (std::size_t i = 0; i < length(); ++i) {
    const std::ptrdiff_t index = proposed.peak + static_cast<std::ptrdiff_t>(i);
    if (index < 0 || index >= std::ssize(samples)) continue;
    const std::complex<double> sample = samples[static_cast<std::size_t>(index)];
    const std::complex<double> expected =
        std::complex<double>(shape_.samples[i]) *
        std::polar(1.0, proposed.frequency * static_cast<double>(i));
    sum += std::conj(expected) * sample;
    energy += std::norm(sample);
  }
  if (energy <= 0) return std::nullopt;
  const double share = std::norm(sum) / (energy_ * energy);
  if (share <= threshold_) return std::nullopt;
  return FoundBurst{static_cast<double>(proposed.peak) + proposed.fraction, share,
                    std::abs(sum) / energy_, proposed.frequency};
}

}  // namespace gr::nagi
