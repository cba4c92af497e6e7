/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/digital/constellation.h>
#include <gnuradio/digital/ofdm_equalizer_base.h>
#include <gnuradio/nagi/api.h>

#include <memory>
#include <vector>

namespace gr {
namespace nagi {

/*! What ofdm_equalizer_tracking must know of the signal, and how it follows the channel. */
struct ofdm_equalizer_tracking_config {
  /*! Of the data carriers, mean power 1. */
  gr::digital::constellation_sptr constellation;
  /*! Carriers. */
  int fft_len = 64;
  /*! These three as everywhere in gr-digital's OFDM. */
  std::vector<std::vector<int>> occupied_carriers;
  std::vector<std::vector<int>> pilot_carriers;
  std::vector<std::vector<gr_complex>> pilot_symbols;
  /*! Symbols of the packet before this frame; the first estimate knows them and the preamble. */
  int symbols_skipped = 0;
  /*! Of the channel, in samples; 0: carriers have nothing to do with each other. */
  int delay_spread = 0;
  /*! Share of the newest symbol in a carrier's gain, between 0 and 1. */
  double alpha = 0.05;
  /*! Share of a symbol's timing error by which the timing is corrected, 0 to below 1; 0: it stays
      as it was when the frame began. */
  double timing_gain = 0.3;
};

/*!
 * \brief OFDM equalizer that follows the common phase, the timing and each carrier's gain.
 * \ingroup nagi
 *
 * \details
 * For gr-digital's ofdm_frame_equalizer_vcvc, like its ofdm_equalizer_simpledfe, which only
 * averages each carrier's gain on its own: it lags behind what is left of a frequency offset, and
 * starts with a channel estimate as noisy as one symbol. This one
 * \li fits the first estimate, and what each symbol adds to it, to an impulse response no longer
 *     than \c delay_spread (the channel's estimate in time, J.-J. van de Beek et al., "On channel
 *     estimation in OFDM systems", VTC 1995);
 * \li turns each symbol back by the phase that pilots and decided symbols show in common, with a
 * second order loop;
 * \li takes the slope of the phase over the carriers out, which a sample clock that is off makes
 *     steeper with each symbol, with another second order loop;
 * \li averages each carrier's gain, over all symbols at first and over 1 / \c alpha later.
 *
 * Each frame starts from its own estimate only.
 */
class NAGI_API ofdm_equalizer_tracking : public gr::digital::ofdm_equalizer_1d_pilots {
 public:
  using sptr = std::shared_ptr<ofdm_equalizer_tracking>;

  /*! Throws std::invalid_argument if something in \p config makes no sense. Input is in shifted
   * order. */
  static sptr make(const ofdm_equalizer_tracking_config& config);

  explicit ofdm_equalizer_tracking(const ofdm_equalizer_tracking_config& config);

  void equalize(gr_complex* frame, int n_sym, const std::vector<gr_complex>& initial_taps,
                const std::vector<gr::tag_t>& tags) override;

 private:
  void fit_first();
  static std::vector<gr_complex> fitted(const std::vector<gr_complex>& values,
                                        const std::vector<gr_complex>& projection);
  void equalize_symbol(gr_complex* symbol, std::size_t index);

  /*! Of second order: a value, and by how much it grows with each symbol. */
  struct Loop {
    double value = 0;
    double rate = 0;

    void advance() { value += rate; }
    void correct(double error, double value_gain, double rate_gain) {
      value += value_gain * error;
      rate += rate_gain * error;
    }
  };

  void turn_back(gr_complex* symbol, double phase, double slope) const;
  double slope_error(const std::vector<gr_complex>& seen, gr_complex common) const;

  gr::digital::constellation_sptr d_constellation;
  std::vector<gr_complex> d_points;
  std::vector<std::size_t> d_active;  // carriers with data or pilots
  std::size_t d_delay_spread = 0;
  // d_active.size() squared each, or nothing
  std::vector<gr_complex> d_smoothing;
  std::vector<gr_complex> d_first_fit;
  std::vector<gr_complex> d_first_fit_in_noise;
  double d_known_symbols;  // that the first estimate comes from
  double d_alpha;
  double d_timing_gain;
  Loop d_phase;  // rad
  Loop d_slope;  // rad from one carrier to the next
};

}  // namespace nagi
}  // namespace gr
