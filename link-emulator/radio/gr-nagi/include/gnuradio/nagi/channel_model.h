/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/gr_complex.h>
#include <gnuradio/nagi/api.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gr {
namespace nagi {

/*! What a channel is. */
struct channel_config {
  enum class fading_type { none, rayleigh, rician };

  std::uint64_t seed = 0;      /*!< of all draws */
  std::uint32_t direction = 0; /*!< names this channel among those of the seed; below 2^23 */
  double sample_rate = 1.0;    /*!< Hz */
  /*! Noise power is 10^(-snr_db / 10) a sample: the SNR of bursts of mean power 1. Infinity: none.
   */
  double snr_db = std::numeric_limits<double>::infinity();
  fading_type fading = fading_type::none; /*!< none, rayleigh or rician */
  double doppler_hz = 0.0;                /*!< the greatest Doppler shift */
  double k_factor_db = 0.0; /*!< Rician: power of the line of sight over that of the rest */
  /*! Paths: delay in ns and power in dB. Powers are normalised to sum 1. None given: one path. */
  std::vector<std::pair<double, double>> taps;
  double frequency_offset_hz = 0.0; /*!< of what is received, from where it was tuned to */
  /*! In place of snr_db: (instant in ns, SNR in dB from then on), the first at 0, again and again
      after snr_period_ns. A burst has the SNR of the instant at which it begins. */
  std::vector<std::pair<std::int64_t, double>> snr_steps;
  std::int64_t snr_period_ns = 0;
  /*! Log-normal shadowing: standard deviation, and after which its correlation has fallen to 1/e.
   */
  double shadowing_db = 0.0;
  double shadowing_decorrelation_s = 1.0;
  double phase_noise_hz = 0.0; /*!< linewidth of the oscillators together */
  /*! By how much the receiver's sample clock is faster than the sender's at instant 0, in ppm, and
      by how much that grows in a second. Never more than 200 ppm. */
  double sample_clock_offset_ppm = 0.0;
  double sample_clock_drift_ppm_s = 0.0;
};

/*! By its name: "none", "rayleigh" or "rician"; throws std::invalid_argument for others. */
NAGI_API channel_config::fading_type fading_from_name(const std::string& name);

/*!
 * \brief A radio channel as a function of absolute time: Gaussian noise, flat or
 * frequency-selective fading, frequency offset.
 *
 * \details
 * What happens to a burst depends on the configuration, its number, the instant it begins and its
 * samples, on nothing else: not on the bursts before it, nor on when it is asked for. But for the
 * conversion of decibels, it is computed by operations that IEEE 754 defines to the last bit, so
 * that every machine makes the same of it.
 *
 * Noise: Philox4x32-10 keyed by the seed and counted by (number, sample), as normal deviates by Box
 * and Muller ("A note on the generation of random normal deviates", Ann. Math. Stat. 29, 1958).
 *
 * Fading: each path's gain is a sum of 32 sinusoids with random phases and angles of arrival (Xiao,
 * Zheng and Beaulieu, "Novel sum-of-sinusoids simulation models for Rayleigh and Rician fading
 * channels", IEEE Trans. Wireless Comm. 5(12), 2006). Its mean power is the path's, its
 * autocorrelation J0(2 pi doppler tau) on average over seeds. If Rician, the first path also has a
 * line of sight, which comes in at 45 degrees. Gains are evaluated 64 times or more in 1/doppler
 * and interpolated linearly in between. Without fading they are constant; the phases of all but the
 * first path are random.
 *
 * Delays between samples: band-limited interpolation by 33 coefficients, a sinc in Kaiser's window
 * (beta 8), flat to 0.001 up to 0.42 of the sample rate. What it would put before the burst's first
 * sample is left out: modems' bursts begin with a guard that is longer.
 *
 * Shadowing changes the SNR, as a receiver sees no other level: a sum of sinusoids in decibels,
 * whose autocorrelation is exp(-tau / decorrelation) on average over seeds (Gudmundson 1991). Phase
 * noise is Wiener's process, which begins anew with each burst, whose phase a receiver has to find
 * anyway.
 *
 * Sample clock: both clocks agree at instant 0. A burst begins at the fraction of a sample by which
 * they have come apart until then, and is longer or shorter by its offset at that instant. It is
 * interpolated by the same sinc at 256 places between samples, and linearly between these: errors
 * are 80 dB below the signal up to 0.42 of the sample rate. It grows by 17 samples and what the
 * offset makes of it.
 */
class NAGI_API channel_model {
 public:
  /*! Throws std::invalid_argument, naming the value, if one is impossible. */
  explicit channel_model(const channel_config& config);
  ~channel_model();
  channel_model(channel_model&&) noexcept;

  /*!
   * \param number which burst of the channel this is
   * \param begin_ns when its first sample is received, in ns of event time
   * \param samples what was sent, at the sample rate
   * \return what is received: longer by the longest delay
   */
  std::vector<gr_complex> apply(std::uint64_t number, std::int64_t begin_ns,
                                std::span<const gr_complex> samples) const;

  /*! Gain of a path at an instant, in s of event time: fading only, with the path's power. */
  gr_complexd gain(std::size_t tap, double time_s) const;

  /*! By how many samples the paths' delays make a burst grow. */
  std::size_t longest_delay() const;

  /*! By how many samples the receiver's clock has come apart from the sender's at an instant. */
  double clock_slip(std::int64_t at_ns) const;

  /*! By how much the receiver's clock is faster at an instant: 1e-6 for 1 ppm. */
  double clock_offset(std::int64_t at_ns) const;

 private:
  struct path;

  path make_path(std::uint32_t index, double delay_ns, double power) const;
  void add_path(const path& via, double begin_s, std::span<const gr_complex> samples,
                std::span<gr_complex> received) const;
  std::vector<gr_complex> resampled(std::int64_t begin_ns,
                                    std::span<const gr_complex> samples) const;
  void rotate(std::int64_t begin_ns, std::span<gr_complex> samples) const;
  void add_phase_noise(std::uint64_t number, std::span<gr_complex> samples) const;
  void add_noise(std::uint64_t number, double power, std::span<gr_complex> samples) const;
  double noise_power(std::int64_t begin_ns) const;

  channel_config config_;
  std::size_t gain_interval_;  // samples
  std::vector<path> paths_;
  std::vector<std::vector<float>> interpolators_;  // by the place between samples; empty: none
  struct snr_course;
  std::unique_ptr<snr_course> snr_;
};

}  // namespace nagi
}  // namespace gr
