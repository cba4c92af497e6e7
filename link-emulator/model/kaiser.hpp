// SPDX-License-Identifier: Apache-2.0
//
// Kaiser's window, which limits the length of interpolating filters.
#pragma once

#include <algorithm>
#include <cmath>

namespace nagi::model {

/// Return the modified Bessel function of the first kind of order 0, computed by its series.
inline double bessel_i0(double x) {
  double term = 1.0;
  double sum = 1.0;
  for (int n = 1; n < 40; ++n) {
    term *= x / (2.0 * n) * (x / (2.0 * n));
    sum += term;
  }
  return sum;
}

/// Return the window's value at `position`, which runs from -1 to 1; not normalised to 1 at 0.
inline double kaiser_window(double position, double beta) {
  return bessel_i0(beta * std::sqrt(std::max(0.0, 1.0 - position * position)));
}

}  // namespace nagi::model
