// SPDX-License-Identifier: Apache-2.0
//
// Kaiser's window, which bounds the reach of interpolating filters.
#pragma once

#include <algorithm>
#include <cmath>

namespace nagi::model {

/// The modified Bessel function of the first kind, order 0, by its series.
inline double bessel_i0(double x) {
  double term = 1.0;
  double sum = 1.0;
  for (int n = 1; n < 40; ++n) {
    term *= x / (2.0 * n) * (x / (2.0 * n));
    sum += term;
  }
  return sum;
}

/// The window's value at `place`, from -1 to 1 over its reach; not divided by that at 0.
inline double kaiser_window(double place, double beta) {
  return bessel_i0(beta * std::sqrt(std::max(0.0, 1.0 - place * place)));
}

}  // namespace nagi::model
