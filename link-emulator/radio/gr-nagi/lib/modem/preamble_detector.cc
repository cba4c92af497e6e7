/* SPDX-License-Identifier: Apache-2.0 */
#include "preamble_detector.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <stdexcept>

namespace gr::nagi {

namespace {

using Complex = PreambleDetector::Complex;

/// Return conj(a) b. Unlike the product of std::complex, this function does not handle infinities.
Complex product(const Complex& a, const Complex& b) {
  return {a.real() * b.real() + a.imag() * b.imag(), a.real() * b.imag() - a.imag() * b.real()};
}

Complex wide(const gr_complex& sample) { return {sample.real(), sample.imag()}; }

/// Return the sample at `index`, or 0 outside the burst.
Complex at(std::span<const gr_complex> burst, std::ptrdiff_t index) {
  if (index < 0 || index >= std::ssize(burst)) return {};
  return wide(burst[static_cast<std::size_t>(index)]);
}

/// Return the vertex of the parabola through three neighbouring values, in samples from the middle
/// value, which is the highest.
double vertex(double before, double middle, double after) {
  const double curve = before - 2 * middle + after;
  return curve < 0 ? std::clamp(0.5 * (before - after) / curve, -0.5, 0.5) : 0.0;
}

}  // namespace

PreambleDetector::PreambleDetector(PreambleShape shape) : shape_(std::move(shape)), sign_(0) {
  if (shape_.repeat_lag == 0 || shape_.repeat_length == 0 ||
      shape_.repeat_begin + shape_.repeat_length + shape_.repeat_lag > shape_.samples.size()) {
    throw std::invalid_argument("the preamble is shorter than its repetition");
  }
  if (!(shape_.threshold > 0 && shape_.threshold < 1)) {
    throw std::invalid_argument("the detection threshold is not between 0 and 1");
  }
  Complex sum;
  for (std::size_t i = 0; i < shape_.repeat_length; ++i) {
    const std::size_t first = shape_.repeat_begin + i;
    sum += product(wide(shape_.samples[first]), wide(shape_.samples[first + shape_.repeat_lag]));
  }
  sign_ = sum.real() < 0 ? -1 : 1;
  if (shape_.spread > 0) prepare_transform();
}

void PreambleDetector::prepare_transform() {
  const std::size_t symbol = shape_.samples.size() / 2;
  if (symbol <= 2 * shape_.spread) {
    throw std::invalid_argument("the preamble's last symbol is shorter than its prefix");
  }
  const std::size_t length = symbol - shape_.spread;
  for (std::size_t i = 0; i < length; ++i) {
    turns_.push_back(std::polar(
        1.0, 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(length)));
  }
  std::vector<Complex> body;
  for (std::size_t i = symbol + shape_.spread; i < 2 * symbol; ++i) {
    body.push_back(wide(shape_.samples[i]));
  }
  std::vector<Complex> used_carriers;
  for (const Complex& value : transform(body, -1)) {
    const bool used = std::norm(value) > 1e-6 * static_cast<double>(length);
    inverse_.push_back(used ? 1.0 / value : Complex());
    used_carriers.push_back(used ? 1.0 : 0.0);
  }
  kernel_ = transform(used_carriers, 1);
}

std::optional<Detection> PreambleDetector::detect(std::span<const gr_complex> burst) const {
  const auto first = coarse(burst);
  if (!first) return std::nullopt;
  return fine(burst, *first);
}

std::optional<PreambleDetector::Coarse> PreambleDetector::coarse(
    std::span<const gr_complex> burst) const {
  const std::size_t lag = shape_.repeat_lag;
  const std::size_t length = shape_.repeat_length;
  if (burst.size() < lag + length) return std::nullopt;
  const std::size_t positions = burst.size() - lag - length + 1;
  Complex correlation;
  double energy = 0;
  const auto add = [&](std::size_t i, double weight) {
    const Complex a = wide(burst[i]);
    const Complex b = wide(burst[i + lag]);
    correlation += weight * product(a, b);
    energy += weight * 0.5 * (std::norm(a) + std::norm(b));
  };
  for (std::size_t i = 0; i < length; ++i) add(i, 1);
  std::size_t end = positions;  // end of the search for the peak, once the threshold is crossed
  double highest = -1;
  Coarse best{};
  for (std::size_t i = 0; i < end; ++i) {
    const double power = std::norm(correlation);
    if (highest < 0 && power > shape_.threshold * energy * energy) {
      end = std::min(positions, i + lag + length);
      highest = 0;
    }
    if (highest >= 0 && power > highest) {
      highest = power;
      best = {static_cast<std::ptrdiff_t>(i) - static_cast<std::ptrdiff_t>(shape_.repeat_begin),
              std::arg(sign_ * correlation) / static_cast<double>(lag)};
    }
    if (i + 1 < positions) {
      add(i, -1);
      add(i + length, 1);
    }
  }
  if (highest < 0) return std::nullopt;
  return best;
}

Detection PreambleDetector::fine(std::span<const gr_complex> burst, const Coarse& first) const {
  const std::size_t size = shape_.samples.size();
  const std::size_t half = size / 2;
  std::vector<Complex> reference(size);
  for (std::size_t i = 0; i < size; ++i) {
    reference[i] =
        wide(shape_.samples[i]) * std::polar(1.0, first.frequency * static_cast<double>(i));
  }
  struct Halves {
    Complex early, late;
    double power() const { return std::norm(early + late); }
  };
  // The correlation of the coarse search falls by only 1 / `repeat_length` per sample around its
  // peak, so noise can move that peak far.
  const auto margin =
      static_cast<std::ptrdiff_t>(std::max(shape_.spread, shape_.repeat_length / 2));
  std::vector<Halves> paths;  // one per sample, from first.begin - margin on
  for (std::ptrdiff_t shift = -margin; shift <= margin; ++shift) {
    Halves path;
    for (std::size_t i = 0; i < size; ++i) {
      const Complex value = at(burst, first.begin + shift + static_cast<std::ptrdiff_t>(i));
      (i < half ? path.early : path.late) += product(reference[i], value);
    }
    paths.push_back(path);
  }
  const auto strongest =
      std::max_element(paths.begin(), paths.end(),
                       [](const auto& a, const auto& b) { return a.power() < b.power(); });
  const std::ptrdiff_t index = strongest - paths.begin();
  Detection result{};
  result.peak = first.begin - margin + index;
  result.begin = result.peak;
  if (index > 0 && index + 1 < std::ssize(paths)) {
    result.fraction = vertex(std::sqrt((strongest - 1)->power()), std::sqrt(strongest->power()),
                             std::sqrt((strongest + 1)->power()));
  }
  const double distance = static_cast<double>(half);
  result.frequency =
      first.frequency + std::arg(product(strongest->early, strongest->late)) / distance;
  result.frequency_weight = distance * distance * distance;
  if (shape_.spread > 0) result.begin = result.peak + first_path(burst, result);
  return result;
}

/// Return the start of the window of `spread` samples that holds the most energy of the channel's
/// impulse response, in samples relative to the strongest path. The impulse response is computed
/// from the gains of the carriers in the preamble's last symbol. A correlation in time would show
/// side lobes of the strongest path as high as weak paths.
std::ptrdiff_t PreambleDetector::first_path(std::span<const gr_complex> burst,
                                            const Detection& found) const {
  const std::size_t length = inverse_.size();
  const auto spread = static_cast<std::ptrdiff_t>(shape_.spread);
  // The samples begin with the cyclic prefix, so that they include earlier paths. The strongest
  // path is therefore at sample `spread`.
  const auto offset = static_cast<std::ptrdiff_t>(shape_.samples.size() - length) - spread;
  std::vector<Complex> samples(length);
  for (std::size_t i = 0; i < length; ++i) {
    samples[i] = at(burst, found.peak + offset + static_cast<std::ptrdiff_t>(i)) *
                 std::polar(1.0, -found.frequency * static_cast<double>(i));
  }
  const auto spectrum = transform(samples, -1);
  std::vector<Complex> gains(length);
  for (std::size_t i = 0; i < length; ++i) gains[i] = spectrum[i] * inverse_[i];
  const auto paths = path_energies(transform(gains, 1));
  // If several windows hold the same energy, the middle one is the safest.
  std::ptrdiff_t first = 0;
  std::ptrdiff_t last = 0;
  double maximum = -1;
  for (std::ptrdiff_t begin = 1; begin <= spread; ++begin) {
    const auto window = paths.begin() + begin;
    const double energy = std::accumulate(window, window + spread, 0.0);
    if (energy > maximum) {
      maximum = energy;
      first = begin;
    }
    if (energy == maximum) last = begin;
  }
  return (first + last) / 2 - spread;
}

/// Return the energies of single paths at the first 2 * `spread` samples of an impulse response.
/// Unused carriers spread each path over its neighbours, so the strongest path is subtracted
/// repeatedly (J. A. Hoegbom, "Aperture synthesis with a non-regular distribution of interferometer
/// baselines", 1974).
std::vector<double> PreambleDetector::path_energies(std::vector<Complex> response) const {
  constexpr int max_paths = 8;
  constexpr double weakest = 0.003;  // relative to the energy of the strongest path
  const std::size_t length = response.size();
  const std::size_t reach = 2 * shape_.spread;
  std::vector<double> energies(reach);
  double max_energy = 0;
  for (int path = 0; path < max_paths; ++path) {
    std::size_t position = 1;
    for (std::size_t i = 1; i < reach; ++i) {
      if (std::norm(response[i]) > std::norm(response[position])) position = i;
    }
    const Complex gain = response[position] / kernel_[0];
    max_energy = std::max(max_energy, std::norm(gain));
    if (std::norm(gain) <= weakest * max_energy) break;
    energies[position] += std::norm(gain);
    for (std::size_t i = 0; i < length; ++i) {
      response[i] -= gain * kernel_[(i + length - position) % length];
    }
  }
  return energies;
}

/// Return the discrete Fourier transform of `values` without a scale factor. `sign` is the sign of
/// the exponent.
std::vector<PreambleDetector::Complex> PreambleDetector::transform(
    const std::vector<Complex>& values, int sign) const {
  const std::size_t length = values.size();
  std::vector<Complex> result(length);
  for (std::size_t k = 0; k < length; ++k) {
    for (std::size_t i = 0; i < length; ++i) {
      const Complex& turn = turns_[k * i % length];
      result[k] += product(sign < 0 ? turn : std::conj(turn), values[i]);
    }
  }
  return result;
}

}  // namespace gr::nagi
