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

/*! Parameters of a channel. */
struct channel_config {
  enum class fading_type { none, rayleigh, rician };

  std::uint64_t seed = 0; /*!< seed of all random draws */
  /*! Number that gives each channel of one seed its own random draws; below 2^23. */
  std::uint32_t direction = 0;
  double sample_rate = 1.0; /*!< Hz */
  /*! SNR in dB of bursts with mean power 1: the noise power per sample is 10^(-snr_db / 10).
      Infinity disables noise. */
  double snr_db = std::numeric_limits<double>::infinity();
  fading_type fading = fading_type::none; /*!< none, rayleigh or rician */
  double doppler_hz = 0.0; /*!< maximum Doppler shift in Hz, at most sample_rate / 100 */
  /*! Rician fading: ratio of the line-of-sight power to the scattered power, in dB. */
  double k_factor_db = 0.0;
  /*! Paths as pairs (delay in ns, power in dB). The powers are normalised to a sum of 1. If the
      list is empty, the channel has one path without delay. */
  std::vector<std::pair<double, double>> taps;
  /*! Carrier frequency of the received signal minus the receiver's tuned frequency, in Hz. */
  double frequency_offset_hz = 0.0;
  /*! SNR over time, which replaces snr_db: pairs (start in ns, SNR in dB). The first start is 0.
      The sequence repeats every snr_period_ns. A burst has the SNR of the instant at which it
      begins. */
  std::vector<std::pair<std::int64_t, double>> snr_steps;
  /*! Period of snr_steps in ns, at most one hour. */
  std::int64_t snr_period_ns = 0;
  /*! Standard deviation of log-normal shadowing in dB, 0 to 40. */
  double shadowing_db = 0.0;
  /*! Time in s after which the autocorrelation of the shadowing has fallen to 1/e. */
  double shadowing_decorrelation_s = 1.0;
  /*! Combined linewidth of the sender's and the receiver's oscillator, in Hz. */
  double phase_noise_hz = 0.0;
  /*! Offset of the receiver's sample clock from the sender's at instant 0, in ppm, -200 to 200. The
      offset is positive if the receiver's clock is faster. */
  double sample_clock_offset_ppm = 0.0;
  /*! Change of the sample-clock offset per second, in ppm/s, -1 to 1. The offset stays within -200
      to 200 ppm. */
  double sample_clock_drift_ppm_s = 0.0;
};

/*! Return the fading type of the name "none", "rayleigh" or "rician". Throws std::invalid_argument
    for other names. */
NAGI_API channel_config::fading_type fading_from_name(const std::string& name);

/*!
 * \brief A radio channel as a function of absolute time: Gaussian noise, flat or
 * frequency-selective fading, frequency offset.
 *
 * \details
 * The received burst depends only on the configuration, the burst's number, the instant at which
 * the burst begins, and the samples. It depends neither on earlier bursts nor on the time of the
 * calculation. Except for the conversion of decibels, all operations are those that IEEE 754
 * defines to the last bit, so every machine computes the same samples.
 *
 * Noise: Philox4x32-10 is keyed by the seed and counted by (number, sample). The method of Box and
 * Muller converts the draws to normal deviates ("A note on the generation of random normal
 * deviates", Ann. Math. Stat. 29, 1958).
 *
 * Fading: the gain of each path is a sum of 32 sinusoids with random phases and angles of arrival
 * (Xiao, Zheng and Beaulieu, "Novel sum-of-sinusoids simulation models for Rayleigh and Rician
 * fading channels", IEEE Trans. Wireless Comm. 5(12), 2006). The gain's mean power is the power of
 * the path. The gain's autocorrelation, averaged over seeds, is J0(2 pi doppler tau). With Rician
 * fading, the first path also has a line of sight, which arrives at 45 degrees. Gains are evaluated
 * at least 64 times per 1/doppler, with linear interpolation in between. Without fading, gains are
 * constant, and all paths except the first have random phases.
 *
 * Fractional delays: a filter of 33 coefficients interpolates between samples. The filter is a sinc
 * with a Kaiser window (beta 8). The frequency response is flat to 0.001 up to 0.42 of the sample
 * rate. The filter's output before the first sample of the burst is discarded. The guard at the
 * start of a modem's burst is longer than that output.
 *
 * Shadowing changes the SNR, because the SNR is the only level that a receiver observes. The
 * shadowing in decibels is a sum of sinusoids. The autocorrelation, averaged over seeds, is
 * exp(-tau / decorrelation) (Gudmundson 1991).
 *
 * Phase noise is a Wiener process. The process restarts at 0 with each burst, because a receiver
 * estimates the initial phase of each burst anyway.
 *
 * Sample clock: the clocks of sender and receiver agree at instant 0. The slip between the clocks
 * at the start of a burst sets the fraction of a sample at which the burst begins. The clock offset
 * at that instant sets the ratio of the sample rates for the whole burst. Resampling uses the sinc
 * filter above, tabulated at 256 positions per sample, with linear interpolation between these
 * positions. The error is 80 dB below the signal up to 0.42 of the sample rate. Resampling
 * lengthens a burst by up to 17 samples plus the clock offset times the length of the burst.
 */
class NAGI_API channel_model {
 public:
  /*! Create a channel.

      Throws std::invalid_argument, naming the value, if a value is out of range. */
  explicit channel_model(const channel_config& config);
  ~channel_model();
  channel_model(channel_model&&) noexcept;

  /*!
   * Return the received samples of one burst.
   *
   * \param number number of the burst on this channel
   * \param begin_ns instant at which the first sample is received, in ns of event time
   * \param samples samples as sent, at the sample rate
   * \return the received samples, more than \p samples by longest_delay() and, with a sample-clock
   *         offset or drift, by the resampling
   */
  std::vector<gr_complex> apply(std::uint64_t number, std::int64_t begin_ns,
                                std::span<const gr_complex> samples) const;

  /*! Return the complex gain of the path with index \p tap at \p time_s, in s of event time. The
      gain includes the path's power and fading, but neither frequency offset nor phase noise. */
  gr_complexd gain(std::size_t tap, double time_s) const;

  /*! Return the number of samples by which the path delays lengthen a burst. */
  std::size_t longest_delay() const;

  /*! Return the slip between the sample clocks at \p at_ns, in samples: the offset of the
      receiver's clock, integrated from instant 0. \p at_ns is in ns of event time. */
  double clock_slip(std::int64_t at_ns) const;

  /*! Return the relative offset of the receiver's sample clock at \p at_ns, in ns of event time.
      1e-6 is 1 ppm; the offset is positive if the receiver's clock is faster. */
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
  std::size_t gain_interval_;  // samples between two evaluated gains
  std::vector<path> paths_;
  // One filter per position between two samples; empty without a sample-clock offset.
  std::vector<std::vector<float>> interpolators_;
  struct snr_course;
  std::unique_ptr<snr_course> snr_;
};

}  // namespace nagi
}  // namespace gr
