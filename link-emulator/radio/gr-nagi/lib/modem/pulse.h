/* SPDX-License-Identifier: Apache-2.0 */
//
// A root-raised-cosine pulse that can be evaluated between samples.
#pragma once

#include <gnuradio/filter/firdes.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

namespace gr::nagi {

class Pulse {
 public:
  Pulse(std::size_t samples_per_symbol, double rolloff, std::size_t span)
      : reach_(static_cast<std::ptrdiff_t>(span * samples_per_symbol)) {
    if (!(rolloff > 0 && rolloff <= 1)) {
      throw std::invalid_argument("the filter's rolloff is not above 0 and at most 1");
    }
    const auto rate = static_cast<double>(phases * samples_per_symbol);
    fine_ = gr::filter::firdes::root_raised_cosine(1.0, rate, 1.0, rolloff,
                                                   static_cast<int>(2 * phases * (reach_ + 1) + 1));
    double energy = 0;
    for (std::ptrdiff_t i = -reach_; i <= reach_; ++i) energy += std::pow(at(i * phases), 2);
    const auto scale =
        static_cast<float>(std::sqrt(static_cast<double>(samples_per_symbol) / energy));
    for (float& value : fine_) value *= scale;
    for (std::ptrdiff_t late = -phases / 2; late <= phases / 2; ++late) {
      auto& taps = taps_.emplace_back();
      for (std::ptrdiff_t i = -reach_; i <= reach_; ++i) taps.push_back(at(i * phases - late));
    }
  }

  /// Return the samples of a pulse that arrives `fraction` samples late. The fraction is from -0.5
  /// to 0.5 and is rounded to 1/32. At a fraction of 0, the energy of the samples is
  /// samples_per_symbol, so that symbols of power 1 produce a signal of power 1.
  const std::vector<float>& taps(double fraction) const {
    return taps_.at(static_cast<std::size_t>(std::lround(fraction * phases) + phases / 2));
  }

 private:
  static constexpr std::ptrdiff_t phases = 32;

  float at(std::ptrdiff_t step) const {
    return fine_[static_cast<std::size_t>(step + phases * (reach_ + 1))];
  }

  std::ptrdiff_t reach_;  // samples on either side of the peak
  std::vector<float> fine_;
  std::vector<std::vector<float>> taps_;  // by lateness in steps of 1 / phases, from the earliest
};

}  // namespace gr::nagi
