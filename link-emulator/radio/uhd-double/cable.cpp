/* SPDX-License-Identifier: Apache-2.0 */
#include "cable.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "model/kaiser.hpp"

namespace nagi::uhd_double {

namespace {

constexpr std::int64_t history_ns = 2'000'000'000;  // emissions are kept this long after their end
constexpr double whole_to = 1e-4;  // samples: a position this close to an integer is one
constexpr int reach = 16;          // of the interpolation, samples on either side
constexpr std::size_t phases = 512;
constexpr double kaiser_beta = 8.0;

using Taps = std::array<float, static_cast<std::size_t>(2) * reach>;

/// Return the taps of a sinc in a Kaiser window, for each sample at `phase / phases` after tap
/// `reach - 1`.
std::vector<Taps> make_interpolation_table() {
  std::vector<Taps> table(phases + 1);
  for (std::size_t phase = 0; phase <= phases; ++phase) {
    double sum = 0;
    std::array<double, static_cast<std::size_t>(2) * reach> taps{};
    for (std::size_t k = 0; k < taps.size(); ++k) {
      const double x = static_cast<double>(k) - (reach - 1) -
                       static_cast<double>(phase) / static_cast<double>(phases);
      const double window = model::kaiser_window(x / reach, kaiser_beta);
      const double sinc =
          std::abs(x) < 1e-12 ? 1 : std::sin(std::numbers::pi * x) / (std::numbers::pi * x);
      taps[k] = sinc * window;
      sum += taps[k];
    }
    for (std::size_t k = 0; k < taps.size(); ++k) {
      table[phase][k] = static_cast<float>(taps[k] / sum);
    }
  }
  return table;
}

/// Return the sample at `index`, or 0 outside the emission.
Sample sample_at(const std::vector<Sample>& samples, std::int64_t index) {
  if (index < 0 || index >= std::ssize(samples)) return {};
  return samples[static_cast<std::size_t>(index)];
}

/// Return the interpolated sample at `position`, in samples from the start of the emission.
Sample interpolate(const std::vector<Sample>& samples, double position) {
  static const std::vector<Taps> table = make_interpolation_table();
  const double whole = std::floor(position);
  const double exact_phase = (position - whole) * static_cast<double>(phases);
  const auto phase = std::min(static_cast<std::size_t>(exact_phase), phases - 1);
  const auto rest = static_cast<float>(exact_phase - static_cast<double>(phase));
  const Taps& low = table[phase];
  const Taps& high = table[phase + 1];
  const auto first = static_cast<std::int64_t>(whole) - (reach - 1);
  Sample sum;
  for (std::size_t k = 0; k < low.size(); ++k) {
    const float tap = low[k] + rest * (high[k] - low[k]);
    sum += tap * sample_at(samples, first + static_cast<std::int64_t>(k));
  }
  return sum;
}

/// Return the position of the first requested sample, in samples of the emission.
double first_position(const Emission& emission, const Reception& reception) {
  // An emission and a reception by the same clock have the same ticks, so no rounding is needed.
  const double since_s = emission.clock == reception.clock
                             ? (reception.begin - emission.begin).get_real_secs()
                             : reception.at.seconds_since(emission.at);
  const double rate_hz =
      emission.clock == reception.clock ? emission.rate_hz : emission.true_rate_hz;
  return since_s * rate_hz;
}

/// Add the samples of an emission that a reception receives to `out`.
void add(const Emission& emission, std::span<Sample> out, const Reception& reception) {
  const bool same_clock = emission.clock == reception.clock;
  const double step = same_clock ? emission.rate_hz / reception.rate_hz
                                 : emission.true_rate_hz / reception.true_rate_hz;
  double first = first_position(emission, reception);
  const auto length = static_cast<double>(emission.samples.size());
  if (first > length + reach || first + step * static_cast<double>(out.size()) < -reach) return;
  const double difference_hz = emission.carrier_hz - reception.carrier_hz;
  // The bands of the emission and of the reception do not overlap.
  if (std::abs(difference_hz) > (emission.rate_hz + reception.rate_hz) / 2) return;
  const auto gain =
      static_cast<float>(std::pow(10.0, (emission.full_scale_dbm - reception.full_scale_dbm) / 20));
  const bool is_whole =
      std::abs(step - 1) < 1e-12 && std::abs(first - std::round(first)) < whole_to;
  if (is_whole) first = std::round(first);
  const auto begin = static_cast<std::size_t>(
      std::clamp(std::floor((-reach - first) / step), 0.0, static_cast<double>(out.size())));
  const auto end = static_cast<std::size_t>(
      std::clamp(std::ceil((length + reach - first) / step), 0.0, static_cast<double>(out.size())));
  // The phase is 0 at the start of the emission.
  const double turn = difference_hz / reception.rate_hz;
  const double phase = difference_hz * first / emission.rate_hz;
  for (std::size_t i = begin; i < end; ++i) {
    const double position = first + step * static_cast<double>(i);
    Sample value = is_whole ? sample_at(emission.samples, static_cast<std::int64_t>(position))
                            : interpolate(emission.samples, position);
    if (difference_hz != 0) {
      const double cycles = phase + turn * static_cast<double>(i);
      value *= Sample(std::polar(1.0, 2 * std::numbers::pi * (cycles - std::floor(cycles))));
    }
    out[i] += gain * value;
  }
}

}  // namespace

std::shared_ptr<Cable> Cable::named(const std::string& name) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<Cable>> cables;
  const std::lock_guard lock(mutex);
  std::weak_ptr<Cable>& entry = cables[name];
  std::shared_ptr<Cable> cable = entry.lock();
  if (!cable) {
    cable = std::make_shared<Cable>();
    entry = cable;
  }
  return cable;
}

std::uint64_t Cable::begin(Emission emission) {
  const std::lock_guard lock(mutex_);
  forget(monotonic_ns() - history_ns);
  emissions_.push_back(std::move(emission));
  return first_ + emissions_.size() - 1;
}

void Cable::append(std::uint64_t emission, std::span<const Sample> samples) {
  const std::lock_guard lock(mutex_);
  if (emission < first_) return;
  std::vector<Sample>& all = emissions_[emission - first_].samples;
  all.insert(all.end(), samples.begin(), samples.end());
}

void Cable::cut(std::uint64_t emission, std::size_t count) {
  const std::lock_guard lock(mutex_);
  if (emission < first_) return;
  std::vector<Sample>& all = emissions_[emission - first_].samples;
  all.resize(std::min(all.size(), count));
}

void Cable::forget(std::int64_t before_ns) {
  while (!emissions_.empty() && emissions_.front().at.ns < before_ns) {
    const Emission& first = emissions_.front();
    const double lasts_s = static_cast<double>(first.samples.size()) / first.rate_hz;
    if (first.at.ns + static_cast<std::int64_t>(lasts_s * 1e9) >= before_ns) return;
    emissions_.pop_front();
    ++first_;
  }
}

void Cable::add_to(std::span<Sample> samples, const Reception& reception) const {
  const std::lock_guard lock(mutex_);
  for (const Emission& emission : emissions_) add(emission, samples, reception);
}

}  // namespace nagi::uhd_double
