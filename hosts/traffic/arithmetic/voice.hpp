// SPDX-License-Identifier: Apache-2.0
//
// The E-model (ITU-T G.107) with defaults for all parameters except delay and loss: the rating is R
// = 93.2 - Id - Ie,eff, and annex B gives the mean opinion score of R.
#pragma once

#include <algorithm>
#include <cmath>

namespace nagi::applications {

/// The parameters of a codec (ITU-T G.113, appendix I).
struct Codec {
  double impairment;  ///< Ie, the impairment without loss
  double robustness;  ///< Bpl, the robustness against loss
};

/// G.711 with packet loss concealment.
inline constexpr Codec g711{0, 25.1};

/// Return Id of a one-way delay from mouth to ear without echo, which is Idd of G.107, section 7.4.
inline double delay_impairment(double delay_ms) {
  if (delay_ms <= 100) return 0;
  const double x = std::log2(delay_ms / 100);
  return 25 * (std::pow(1 + std::pow(x, 6), 1.0 / 6) -
               3 * std::pow(1 + std::pow(x / 3, 6), 1.0 / 6) + 2);
}

/// Return Ie,eff (G.107, section 7.5). `loss` is the share of lost packets. `burst_ratio`, at least
/// 1, is the mean length of bursts of losses divided by the mean length for independent losses.
inline double loss_impairment(const Codec& codec, double loss, double burst_ratio = 1) {
  const double percent = loss * 100;
  return codec.impairment + (95 - codec.impairment) * percent /
                                (percent / std::max(1.0, burst_ratio) + codec.robustness);
}

/// Return the rating R.
inline double rating(const Codec& codec, double delay_ms, double loss, double burst_ratio = 1) {
  return 93.2 - delay_impairment(delay_ms) - loss_impairment(codec, loss, burst_ratio);
}

/// Return the mean opinion score of a rating, from 1 to 4.5 (G.107, annex B).
inline double opinion_score(double r) {
  if (r <= 0) return 1;
  if (r >= 100) return 4.5;
  return std::max(1.0, 1 + 0.035 * r + r * (r - 60) * (100 - r) * 7e-6);
}

}  // namespace nagi::applications
