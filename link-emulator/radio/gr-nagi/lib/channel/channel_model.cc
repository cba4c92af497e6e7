/* SPDX-License-Identifier: Apache-2.0 */
#include <gnuradio/nagi/channel_model.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>
#include <stdexcept>

#include "model/box_muller.hpp"
#include "model/fading.hpp"
#include "model/kaiser.hpp"
#include "model/trace.hpp"

namespace gr {
namespace nagi {

using ::nagi::model::channel_draw;
using ::nagi::model::ChannelKey;
using ::nagi::model::ChannelPurpose;
using ::nagi::model::fading_sinusoids;
using ::nagi::model::kaiser_window;
using ::nagi::model::minus_log;
using ::nagi::model::phasor;
using ::nagi::model::power_of_db;
using ::nagi::model::Sinusoid;
using ::nagi::model::sum_at;

namespace {

constexpr double gains_a_doppler_period = 64.0;
constexpr double longest_gain_interval = 1024.0;
constexpr double whole_to = 1e-6;  // samples; a delay this close to a whole number is rounded
constexpr std::size_t filter_reach = 16;  // samples on either side
constexpr double kaiser_beta = 8.0;
constexpr std::size_t positions = 256;  // interpolators per sample interval
constexpr double max_clock_offset_ppm = 200.0;
constexpr std::int64_t longest_period_ns = 3'600'000'000'000;

gr_complex product(gr_complex a, gr_complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}
gr_complexd product(gr_complexd a, gr_complexd b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

/// Return the coefficients for a delay of 16 + `rest` samples, with `rest` in [0, 1]. The sum of
/// the coefficients is 1.
std::vector<float> fractional_delay(double rest) {
  const auto reach = static_cast<double>(filter_reach);
  std::vector<double> taps;
  double sum = 0.0;
  for (std::size_t k = 0; k <= 2 * filter_reach; ++k) {
    const double x = static_cast<double>(k) - reach - rest;
    const double position = x / (reach + 1.0);
    const double window = kaiser_window(position, kaiser_beta);
    const double sinc =
        x == 0.0 ? 1.0 : ::nagi::model::phasor(x / 2.0).imag() / (std::numbers::pi * x);
    taps.push_back(sinc * window);
    sum += taps.back();
  }
  std::vector<float> coefficients;
  for (const double tap : taps) coefficients.push_back(static_cast<float>(tap / sum));
  return coefficients;
}

/// Return `samples` filtered, without the filter's delay of 16 samples. The result is 16 samples
/// longer than `samples`.
std::vector<gr_complex> filtered(std::span<const float> filter,
                                 std::span<const gr_complex> samples) {
  std::vector<gr_complex> out(samples.size() + filter_reach);
  for (std::size_t k = 0; k < filter.size(); ++k) {
    const std::size_t skipped = k < filter_reach ? filter_reach - k : 0;
    const std::size_t at = k < filter_reach ? 0 : k - filter_reach;
    const float tap = filter[k];
    for (std::size_t i = skipped; i < samples.size(); ++i) {
      out[at + i - skipped] += gr_complex(tap * samples[i].real(), tap * samples[i].imag());
    }
  }
  return out;
}

void require(bool holds, const std::string& what) {
  if (!holds) throw std::invalid_argument("channel: " + what);
}

void check(const channel_config& config) {
  const auto finite_from_0 = [](double x) { return std::isfinite(x) && x >= 0.0; };
  require(config.direction < ::nagi::model::max_channels, "direction must be below 2^23");
  require(finite_from_0(config.sample_rate) && config.sample_rate > 0,
          "sample_rate must be above 0");
  require(!std::isnan(config.snr_db) && config.snr_db > -200.0, "snr_db must be above -200");
  require(finite_from_0(config.doppler_hz) && config.doppler_hz <= config.sample_rate / 100.0,
          "doppler_hz must be from 0 to a hundredth of sample_rate");
  require(std::isfinite(config.k_factor_db), "k_factor_db must be a number");
  require(std::abs(config.frequency_offset_hz) <= config.sample_rate / 2.0,
          "frequency_offset_hz must be within half of sample_rate");
  require(finite_from_0(config.shadowing_db) && config.shadowing_db <= 40.0,
          "shadowing_db must be from 0 to 40");
  require(std::isfinite(config.shadowing_decorrelation_s) && config.shadowing_decorrelation_s > 0.0,
          "shadowing_decorrelation_s must be above 0");
  require(
      finite_from_0(config.phase_noise_hz) && config.phase_noise_hz <= config.sample_rate / 100.0,
      "phase_noise_hz must be from 0 to a hundredth of sample_rate");
  require(std::abs(config.sample_clock_offset_ppm) <= max_clock_offset_ppm,
          "sample_clock_offset_ppm must be within 200");
  require(std::abs(config.sample_clock_drift_ppm_s) <= 1.0,
          "sample_clock_drift_ppm_s must be within 1");
  std::int64_t before = -1;
  for (const auto& [at_ns, snr_db] : config.snr_steps) {
    require(before < 0 ? at_ns == 0 : at_ns > before,
            "snr_steps must begin at 0, and their starts must increase");
    require(std::isfinite(snr_db) && snr_db > -200.0, "snr_steps must have SNRs above -200 dB");
    before = at_ns;
  }
  require(config.snr_steps.empty() ||
              (config.snr_period_ns > before && config.snr_period_ns <= longest_period_ns),
          "snr_period_ns must exceed the start of the last of snr_steps, and be at most an hour");
  for (const auto& [delay_ns, power_db] : config.taps) {
    require(finite_from_0(delay_ns) && delay_ns <= 1e9, "a tap's delay must be from 0 to 10^9 ns");
    require(std::isfinite(power_db), "a tap's power must be a number");
  }
}

}  // namespace

channel_config::fading_type fading_from_name(const std::string& name) {
  using enum channel_config::fading_type;
  if (name == "none") return none;
  if (name == "rayleigh") return rayleigh;
  if (name == "rician") return rician;
  throw std::invalid_argument("fading: \"" + name +
                              R"(" is not one of "none", "rayleigh", "rician")");
}

struct channel_model::path {
  std::size_t delay;          // whole samples
  std::vector<float> filter;  // for the fractional part of the delay; empty if the delay is whole
  std::vector<Sinusoid> sinusoids;
};

struct channel_model::snr_course {
  ::nagi::model::Trace<double> snr_db;
  std::optional<::nagi::model::Shadowing> shadowing;
};

channel_model::channel_model(const channel_config& config) : config_(config) {
  check(config_);
  if (config_.taps.empty()) config_.taps = {{0.0, 0.0}};
  snr_ = std::make_unique<snr_course>();
  if (config_.snr_steps.empty()) {
    snr_->snr_db = {{{::nagi::Duration{0}, config_.snr_db}}, ::nagi::Duration{1}};
  } else {
    snr_->snr_db.period = ::nagi::Duration{config_.snr_period_ns};
    for (const auto& [at_ns, snr_db] : config_.snr_steps) {
      snr_->snr_db.steps.push_back({::nagi::Duration{at_ns}, snr_db});
    }
  }
  if (config_.shadowing_db > 0.0) {
    snr_->shadowing.emplace(
        ::nagi::model::ShadowingConfig{config_.shadowing_db, config_.shadowing_decorrelation_s},
        ChannelKey{config_.seed, config_.direction});
  }
  gain_interval_ = static_cast<std::size_t>(
      std::min(longest_gain_interval,
               std::max(1.0, config_.sample_rate / (gains_a_doppler_period * config_.doppler_hz))));
  double sum = 0.0;
  for (const auto& [delay_ns, power_db] : config_.taps) sum += power_of_db(power_db);
  for (const auto& [delay_ns, power_db] : config_.taps) {
    const auto index = static_cast<std::uint32_t>(paths_.size());
    paths_.push_back(make_path(index, delay_ns, power_of_db(power_db) / sum));
  }
  if (config_.sample_clock_offset_ppm != 0.0 || config_.sample_clock_drift_ppm_s != 0.0) {
    for (std::size_t position = 0; position <= positions; ++position) {
      interpolators_.push_back(
          fractional_delay(1.0 - static_cast<double>(position) / static_cast<double>(positions)));
    }
  }
}

channel_model::~channel_model() = default;
channel_model::channel_model(channel_model&&) noexcept = default;

channel_model::path channel_model::make_path(std::uint32_t index, double delay_ns,
                                             double power) const {
  const ::nagi::model::FadingConfig fading{static_cast<::nagi::model::FadingKind>(config_.fading),
                                           config_.doppler_hz, config_.k_factor_db};
  const double samples = delay_ns * 1e-9 * config_.sample_rate;
  const double nearest = std::nearbyint(samples);
  path result;
  if (std::abs(samples - nearest) < whole_to) {
    result.delay = static_cast<std::size_t>(nearest);
  } else {
    result.delay = static_cast<std::size_t>(samples);
    result.filter = fractional_delay(samples - static_cast<double>(result.delay));
  }
  result.sinusoids = fading_sinusoids(fading, {config_.seed, config_.direction}, index, power);
  return result;
}

std::size_t channel_model::longest_delay() const {
  std::size_t longest = 0;
  for (const path& via : paths_) {
    longest = std::max(longest, via.delay + (via.filter.empty() ? 0 : filter_reach));
  }
  return longest;
}

gr_complexd channel_model::gain(std::size_t tap, double time_s) const {
  return sum_at(paths_.at(tap).sinusoids, time_s);
}

std::vector<gr_complex> channel_model::apply(std::uint64_t number, std::int64_t begin_ns,
                                             std::span<const gr_complex> samples) const {
  std::vector<gr_complex> received(samples.size() + longest_delay());
  const double begin_s = static_cast<double>(begin_ns) * 1e-9;
  for (const path& via : paths_) {
    if (via.filter.empty()) {
      add_path(via, begin_s, samples, received);
    } else {
      add_path(via, begin_s, filtered(via.filter, samples), received);
    }
  }
  if (!interpolators_.empty()) received = resampled(begin_ns, received);
  if (config_.frequency_offset_hz != 0.0) rotate(begin_ns, received);
  if (config_.phase_noise_hz > 0.0) add_phase_noise(number, received);
  const double power = noise_power(begin_ns);
  if (power > 0.0) add_noise(number, power, received);
  return received;
}

double channel_model::noise_power(std::int64_t begin_ns) const {
  const auto begin = ::nagi::Instant{::nagi::Duration{begin_ns}};
  double snr_db = snr_->snr_db.at(begin).value;
  if (snr_->shadowing) {
    snr_db += snr_->shadowing->gain_db(static_cast<double>(begin_ns) * 1e-9);
  }
  return power_of_db(-snr_db);
}

/// Add the samples of one path to `received`. Each sinusoid is evaluated at the start of the burst
/// and then rotated by a constant phasor from one gain to the next.
void channel_model::add_path(const path& via, double begin_s, std::span<const gr_complex> samples,
                             std::span<gr_complex> received) const {
  std::vector<gr_complexd> now;
  std::vector<gr_complexd> step;
  const double first_s = begin_s + static_cast<double>(via.delay) / config_.sample_rate;
  const double step_s = static_cast<double>(gain_interval_) / config_.sample_rate;
  for (const Sinusoid& sinusoid : via.sinusoids) {
    now.push_back(sinusoid.amplitude *
                  phasor(sinusoid.frequency_hz * first_s + sinusoid.phase_cycles));
    step.push_back(phasor(sinusoid.frequency_hz * step_s));
  }
  const auto sum = [&now] {
    gr_complexd total = 0.0;
    for (const gr_complexd& term : now) total += term;
    return gr_complex(total);
  };
  gr_complex gain = sum();
  for (std::size_t from = 0; from < samples.size(); from += gain_interval_) {
    for (std::size_t n = 0; n < now.size(); ++n) now[n] = product(now[n], step[n]);
    const gr_complex next = sum();
    const gr_complex slope = (next - gain) / static_cast<float>(gain_interval_);
    const std::size_t count = std::min(gain_interval_, samples.size() - from);
    for (std::size_t i = 0; i < count; ++i) {
      received[via.delay + from + i] +=
          product(gain + static_cast<float>(i) * slope, samples[from + i]);
    }
    gain = next;
  }
}

/// Return the clock offset, clamped to the maximum of 200 ppm in either direction.
double channel_model::clock_offset(std::int64_t at_ns) const {
  const double seconds = static_cast<double>(at_ns) * 1e-9;
  const double ppm = config_.sample_clock_offset_ppm + config_.sample_clock_drift_ppm_s * seconds;
  return std::clamp(ppm, -max_clock_offset_ppm, max_clock_offset_ppm) * 1e-6;
}

double channel_model::clock_slip(std::int64_t at_ns) const {
  const double seconds = static_cast<double>(at_ns) * 1e-9;
  double drifting = seconds;  // s from instant 0 until the offset reaches its maximum
  if (config_.sample_clock_drift_ppm_s != 0.0) {
    const double limit = std::copysign(max_clock_offset_ppm, config_.sample_clock_drift_ppm_s);
    drifting = std::clamp(
        (limit - config_.sample_clock_offset_ppm) / config_.sample_clock_drift_ppm_s, 0.0, seconds);
  }
  const double ppm_seconds = config_.sample_clock_offset_ppm * drifting +
                             config_.sample_clock_drift_ppm_s * drifting * drifting / 2.0 +
                             clock_offset(at_ns) * 1e6 * (seconds - drifting);
  return ppm_seconds * 1e-6 * config_.sample_rate;
}

/// Return the burst as the receiver's clock samples it. Sample n of the receiver is at
/// (n - fraction) / (1 + offset) of the sender's samples, because the receiver counts from its last
/// whole sample before the burst.
std::vector<gr_complex> channel_model::resampled(std::int64_t begin_ns,
                                                 std::span<const gr_complex> samples) const {
  const double slip = clock_slip(begin_ns);
  const double fraction = slip - std::floor(slip);
  const double offset = clock_offset(begin_ns);
  const auto reach = static_cast<std::ptrdiff_t>(filter_reach);
  const double length = static_cast<double>(samples.size()) * (1.0 + offset) + fraction;
  std::vector<gr_complex> out(static_cast<std::size_t>(std::ceil(length)) + filter_reach);
  for (std::size_t n = 0; n < out.size(); ++n) {
    const double at = (static_cast<double>(n) - fraction) / (1.0 + offset);
    const double whole = std::floor(at);
    const double position = (at - whole) * static_cast<double>(positions);
    const auto lower = std::min(static_cast<std::size_t>(position), positions - 1);
    const auto share = static_cast<float>(position - static_cast<double>(lower));
    const auto& before = interpolators_[lower];
    const auto& after = interpolators_[lower + 1];
    const std::ptrdiff_t last = static_cast<std::ptrdiff_t>(whole) + 1 + reach;
    float real = 0.0F;
    float imaginary = 0.0F;
    for (std::ptrdiff_t k = 0; k <= 2 * reach; ++k) {
      const std::ptrdiff_t index = last - k;
      if (index < 0 || index >= std::ssize(samples)) continue;
      const auto tap_at = static_cast<std::size_t>(k);
      const float tap = before[tap_at] + share * (after[tap_at] - before[tap_at]);
      const gr_complex& sample = samples[static_cast<std::size_t>(index)];
      real += tap * sample.real();
      imaginary += tap * sample.imag();
    }
    out[n] = {real, imaginary};
  }
  return out;
}

/// Apply the frequency offset. The phase is that of an oscillator that starts at instant 0.
void channel_model::rotate(std::int64_t begin_ns, std::span<gr_complex> samples) const {
  constexpr std::size_t exact_every = 512;  // samples; limits the rounding error of `turn`
  const double cycles_a_sample = config_.frequency_offset_hz / config_.sample_rate;
  // The phase of whole seconds is separate, so the phase is as exact after a day as after 1 ms.
  const double seconds = static_cast<double>(begin_ns / 1'000'000'000);
  const double rest = static_cast<double>(begin_ns % 1'000'000'000) * 1e-9;
  const double whole = config_.frequency_offset_hz * seconds;
  const double begin = whole - std::floor(whole) + config_.frequency_offset_hz * rest;
  const gr_complexd step = phasor(cycles_a_sample);
  gr_complexd turn;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    turn = i % exact_every == 0 ? phasor(begin + cycles_a_sample * static_cast<double>(i))
                                : product(turn, step);
    samples[i] = product(samples[i], gr_complex(turn));
  }
}

/// Apply phase noise. Each draw gives four steps of the phase.
void channel_model::add_phase_noise(std::uint64_t number, std::span<gr_complex> samples) const {
  // The variance of 2 pi linewidth t in rad^2 is linewidth t / (2 pi) in cycles^2.
  const double variance = config_.phase_noise_hz / config_.sample_rate / (2.0 * std::numbers::pi);
  const auto power = static_cast<float>(2.0 * variance);
  const ChannelKey key{config_.seed, config_.direction};
  double cycles = 0.0;
  for (std::size_t from = 0; from < samples.size(); from += 4) {
    const auto random = channel_draw(key, ChannelPurpose::phase_noise,
                                     static_cast<std::uint32_t>(from / 4), number);
    std::array<float, 4> steps{};
    for (std::size_t pair = 0; pair < 2; ++pair) {
      const float length = std::sqrt(power * minus_log(random[2 * pair]));
      const auto [x, y] = phasor(random[2 * pair + 1]);
      steps[2 * pair] = length * x;
      steps[2 * pair + 1] = length * y;
    }
    for (std::size_t i = 0; i < 4 && from + i < samples.size(); ++i) {
      cycles += static_cast<double>(steps[i]);
      samples[from + i] = product(samples[from + i], gr_complex(phasor(cycles)));
    }
  }
}

/// Add Gaussian noise. Each draw gives two complex samples.
void channel_model::add_noise(std::uint64_t number, double power_a_sample,
                              std::span<gr_complex> samples) const {
  constexpr std::size_t batch = 256;
  std::array<std::uint32_t, batch> lengths;
  std::array<std::uint32_t, batch> angles;
  std::array<float, batch> real;
  std::array<float, batch> imaginary;
  const auto power = static_cast<float>(power_a_sample);
  const ChannelKey key{config_.seed, config_.direction};
  for (std::size_t from = 0; from < samples.size(); from += batch) {
    const std::size_t count = std::min(batch, samples.size() - from);
    for (std::size_t i = 0; i < batch; i += 2) {
      const auto random = channel_draw(key, ChannelPurpose::noise,
                                       static_cast<std::uint32_t>((from + i) / 2), number);
      lengths[i] = random[0];
      angles[i] = random[1];
      lengths[i + 1] = random[2];
      angles[i + 1] = random[3];
    }
    for (std::size_t i = 0; i < batch; ++i) {
      const float length = std::sqrt(power * minus_log(lengths[i]));
      const auto [x, y] = phasor(angles[i]);
      real[i] = length * x;
      imaginary[i] = length * y;
    }
    for (std::size_t i = 0; i < count; ++i) {
      samples[from + i] += gr_complex(real[i], imaginary[i]);
    }
  }
}

}  // namespace nagi
}  // namespace gr
