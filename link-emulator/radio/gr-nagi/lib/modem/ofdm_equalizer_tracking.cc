/* SPDX-License-Identifier: Apache-2.0 */
#include <gnuradio/nagi/ofdm_equalizer_tracking.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

#include "packet_limits.h"

namespace gr {
namespace nagi {

namespace {

using Complex = std::complex<double>;
using Matrix = std::vector<std::vector<Complex>>;

/// Return 1 / gain. The division of std::complex also handles infinities and takes ten times as
/// long.
gr_complex inverse_of(const gr_complex& gain) {
  // The gain is 0 if the packet is cut off. The result 0 then makes all its symbols 0.
  const float power = std::norm(gain);
  return power > 0 ? std::conj(gain) / power : gr_complex();
}

/// Solve a x = b for every column of b and store x in b. `a` is Hermitian and positive definite, so
/// the elimination needs no pivoting.
void solve(Matrix a, Matrix& b) {
  const std::size_t size = a.size();
  for (std::size_t pivot = 0; pivot < size; ++pivot) {
    for (std::size_t row = 0; row < size; ++row) {
      if (row == pivot) continue;
      const Complex factor = a[row][pivot] / a[pivot][pivot];
      for (std::size_t k = pivot; k < size; ++k) a[row][k] -= factor * a[pivot][k];
      for (std::size_t k = 0; k < b[row].size(); ++k) b[row][k] -= factor * b[pivot][k];
    }
  }
  for (std::size_t row = 0; row < size; ++row) {
    for (Complex& value : b[row]) value /= a[row][row];
  }
}

/// Noise that regularises the fit of the gains: the noise of a carrier divided by the energy of a
/// tap. With little noise, the outermost carriers, which have neighbours on one side only,
/// occasionally get gains so wrong that the decisions keep them wrong. With much noise, the fitted
/// gains are too small.
constexpr double little_noise = 0.01;
constexpr double much_noise = 1;

/// Return the noise at which a constellation is usable. The noise is lower if the points of the
/// constellation are closer.
double noise_expected(const std::vector<gr_complex>& points) {
  float nearest = 2;
  for (std::size_t i = 1; i < points.size(); ++i) {
    nearest = std::min(nearest, std::abs(points[i] - points[0]));
  }
  return std::min(0.5 * nearest * nearest, much_noise);
}

/// Return the matrix, row by row, that projects the gains of `carriers` onto impulse responses of
/// `taps` samples. `noise` is the noise of a carrier divided by the energy of a tap.
std::vector<gr_complex> projection(const std::vector<std::size_t>& carriers, std::size_t fft_len,
                                   std::size_t taps, double noise) {
  Matrix fourier(carriers.size(), std::vector<Complex>(taps));
  for (std::size_t i = 0; i < carriers.size(); ++i) {
    const double turn = 2 * std::numbers::pi *
                        (static_cast<double>(carriers[i]) - static_cast<double>(fft_len) / 2) /
                        static_cast<double>(fft_len);
    for (std::size_t k = 0; k < taps; ++k) {
      fourier[i][k] = std::polar(1.0, -turn * static_cast<double>(k));
    }
  }
  Matrix square(taps, std::vector<Complex>(taps));
  Matrix inverse(taps, std::vector<Complex>(carriers.size()));
  for (std::size_t k = 0; k < taps; ++k) {
    for (std::size_t i = 0; i < carriers.size(); ++i) {
      inverse[k][i] = std::conj(fourier[i][k]);
      for (std::size_t l = 0; l < taps; ++l)
        square[k][l] += std::conj(fourier[i][k]) * fourier[i][l];
    }
    square[k][k] += noise;
  }
  solve(square, inverse);
  std::vector<gr_complex> flat;
  for (std::size_t i = 0; i < carriers.size(); ++i) {
    for (std::size_t j = 0; j < carriers.size(); ++j) {
      Complex sum;
      for (std::size_t k = 0; k < taps; ++k) sum += fourier[i][k] * inverse[k][j];
      flat.emplace_back(sum);
    }
  }
  return flat;
}

}  // namespace

ofdm_equalizer_tracking::sptr ofdm_equalizer_tracking::make(
    const ofdm_equalizer_tracking_config& config) {
  return std::make_shared<ofdm_equalizer_tracking>(config);
}

ofdm_equalizer_tracking::ofdm_equalizer_tracking(const ofdm_equalizer_tracking_config& config)
    : ofdm_equalizer_1d_pilots(config.fft_len, config.occupied_carriers, config.pilot_carriers,
                               config.pilot_symbols, config.symbols_skipped, true),
      d_constellation(config.constellation),
      d_points(config.constellation->points()),
      d_known_symbols(1.0 + config.symbols_skipped),
      d_alpha(config.alpha),
      d_timing_gain(config.timing_gain) {
  if (!(d_alpha > 0 && d_alpha < 1)) {
    throw std::invalid_argument("ofdm_equalizer_tracking: alpha must be between 0 and 1");
  }
  if (!(d_timing_gain >= 0 && d_timing_gain < 1)) {
    throw std::invalid_argument("ofdm_equalizer_tracking: timing_gain must be from 0 to below 1");
  }
  if (config.pilot_carriers.size() != config.pilot_symbols.size()) {
    throw std::invalid_argument(
        "ofdm_equalizer_tracking: pilot_carriers and pilot_symbols have different lengths");
  }
  const auto length = static_cast<std::size_t>(config.fft_len);
  for (std::size_t carrier = 0; carrier < length; ++carrier) {
    const bool pilot = !d_pilot_carriers.empty() && d_pilot_carriers[0][carrier];
    if (pilot || d_occupied_carriers[carrier]) d_active.push_back(carrier);
  }
  const auto spread =
      in_range("ofdm_equalizer_tracking: delay_spread", config.delay_spread, 0, config.fft_len);
  if (spread == 0) return;
  if (spread >= d_active.size()) {
    throw std::invalid_argument(
        "ofdm_equalizer_tracking: delay_spread exceeds the number of carriers in use");
  }
  d_delay_spread = spread;
  d_smoothing = projection(d_active, length, spread, noise_expected(d_points));
  if (config.symbols_skipped > 0) return;  // an earlier equalizer has fitted the first estimate
  d_first_fit = projection(d_active, length, spread, little_noise);
  d_first_fit_in_noise = projection(d_active, length, spread, much_noise);
}

void ofdm_equalizer_tracking::equalize(gr_complex* frame, int n_sym,
                                       const std::vector<gr_complex>& initial_taps,
                                       const std::vector<gr::tag_t>&) {
  if (!initial_taps.empty()) d_channel_state = initial_taps;
  d_phase = {};
  d_slope = {};
  if (!d_first_fit.empty()) fit_first();
  for (int i = 0; i < n_sym; ++i) {
    equalize_symbol(frame + i * d_fft_len, static_cast<std::size_t>(i));
    if (!d_pilot_carriers.empty()) {
      d_pilot_carr_set = (d_pilot_carr_set + 1) % static_cast<int>(d_pilot_carriers.size());
    }
  }
}

/// Fit the channel estimate that comes with a packet to impulse responses of `delay_spread`
/// samples.
void ofdm_equalizer_tracking::fit_first() {
  std::vector<gr_complex> raw;
  for (const std::size_t carrier : d_active) raw.push_back(d_channel_state[carrier]);
  std::vector<gr_complex> gains = fitted(raw, d_first_fit);
  double noise = 0;
  double power = 0;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    noise += std::norm(raw[i] - gains[i]);
    power += std::norm(gains[i]);
  }
  // The residual is the noise in all dimensions except those of the taps.
  const auto taps = static_cast<double>(d_delay_spread);
  const auto carriers = static_cast<double>(raw.size());
  if (noise / (carriers - taps) > 0.3 * power / carriers / taps) {
    gains = fitted(raw, d_first_fit_in_noise);
  }
  for (std::size_t i = 0; i < raw.size(); ++i) d_channel_state[d_active[i]] = gains[i];
}

/// Return the values of the active carriers, projected by `projection` onto the possible impulse
/// responses.
std::vector<gr_complex> ofdm_equalizer_tracking::fitted(const std::vector<gr_complex>& values,
                                                        const std::vector<gr_complex>& projection) {
  std::vector<gr_complex> result;
  const gr_complex* weight = projection.data();
  for (std::size_t i = 0; i < values.size(); ++i) {
    float real = 0;
    float imag = 0;
    for (const gr_complex& value : values) {
      real += weight->real() * value.real() - weight->imag() * value.imag();
      imag += weight->real() * value.imag() + weight->imag() * value.real();
      ++weight;
    }
    result.emplace_back(real, imag);
  }
  return result;
}

/// Rotate each carrier back by a phase in rad and by the phase's slope in rad per carrier. Each
/// phasor is the previous phasor, rotated by one step.
void ofdm_equalizer_tracking::turn_back(gr_complex* symbol, double phase, double slope) const {
  const double first = static_cast<double>(d_active.front()) - d_fft_len / 2.0;
  const Complex step = std::polar(1.0, -slope);
  Complex phasor = std::polar(1.0, -phase - slope * first);
  for (std::size_t carrier = d_active.front(); carrier <= d_active.back(); ++carrier) {
    const gr_complex value = symbol[carrier];
    const gr_complex by(phasor);
    symbol[carrier] = {value.real() * by.real() - value.imag() * by.imag(),
                       value.real() * by.imag() + value.imag() * by.real()};
    phasor = {phasor.real() * step.real() - phasor.imag() * step.imag(),
              phasor.real() * step.imag() + phasor.imag() * step.real()};
  }
}

/// Return the slope of the phase over the carriers, in rad per carrier. The slope is that of a
/// straight line through `seen`, relative to the phase of the sum `common`. `seen` holds, for each
/// active carrier, its value times the conjugate of the expected value.
double ofdm_equalizer_tracking::slope_error(const std::vector<gr_complex>& seen,
                                            gr_complex common) const {
  const double length = std::abs(Complex(common));
  if (!(length > 0)) return 0;
  const Complex back = std::conj(Complex(common)) / length;
  double weights = 0;
  double first = 0;  // first and second moments of the carriers
  double second = 0;
  double phases = 0;
  double products = 0;
  for (std::size_t i = 0; i < d_active.size(); ++i) {
    const double offset = static_cast<double>(d_active[i]) - d_fft_len / 2.0;
    const Complex turned = Complex(seen[i]) * back;
    const double weight = std::max(turned.real(), 0.0);
    weights += weight;
    first += weight * offset;
    second += weight * offset * offset;
    phases += turned.imag();
    products += turned.imag() * offset;
  }
  const double spread = weights * second - first * first;
  return spread > 0 ? (weights * products - first * phases) / spread : 0;
}

void ofdm_equalizer_tracking::equalize_symbol(gr_complex* symbol, std::size_t index) {
  constexpr double phase_gain = 0.4;
  constexpr double frequency_gain = 0.05;
  const auto set = static_cast<std::size_t>(d_pilot_carr_set);
  const bool pilots = !d_pilot_carriers.empty();
  d_phase.advance();
  d_slope.advance();
  turn_back(symbol, d_phase.value, d_slope.value);
  std::vector<gr_complex> ideal(d_active.size());
  std::vector<gr_complex> inverse(d_active.size());
  std::vector<gr_complex> seen(d_active.size());
  gr_complex common;
  for (std::size_t i = 0; i < d_active.size(); ++i) {
    const std::size_t carrier = d_active[i];
    const gr_complex gain = d_channel_state[carrier];
    inverse[i] = inverse_of(gain);
    if (pilots && d_pilot_carriers[set][carrier]) {
      ideal[i] = d_pilot_symbols[set][carrier];
    } else {
      const gr_complex equal = symbol[carrier] * inverse[i];
      ideal[i] = d_points[d_constellation->decision_maker(&equal)];
    }
    seen[i] = symbol[carrier] * std::conj(gain * ideal[i]);
    common += seen[i];
  }
  const double phase = d_phase.value;
  const double slope = d_slope.value;
  d_phase.correct(std::arg(Complex(common)), phase_gain, frequency_gain);
  d_slope.correct(slope_error(seen, common), d_timing_gain, d_timing_gain * d_timing_gain / 4);
  const auto share = static_cast<float>(
      std::max(d_alpha, 1.0 / (d_known_symbols + static_cast<double>(index) + 1)));
  turn_back(symbol, d_phase.value - phase, d_slope.value - slope);
  std::vector<gr_complex> errors(d_active.size());
  for (std::size_t i = 0; i < d_active.size(); ++i) {
    const std::size_t carrier = d_active[i];
    const gr_complex gain = d_channel_state[carrier];
    const gr_complex value = symbol[carrier];
    symbol[carrier] = value * inverse[i];
    // The error is weighted by the power of the decided point, because an inner point of 16-QAM
    // carries less information about the gain.
    errors[i] = (value - gain * ideal[i]) * std::conj(ideal[i]);
  }
  if (d_delay_spread > 0) errors = fitted(errors, d_smoothing);
  for (std::size_t i = 0; i < d_active.size(); ++i) {
    d_channel_state[d_active[i]] += share * errors[i];
  }
}

}  // namespace nagi
}  // namespace gr
