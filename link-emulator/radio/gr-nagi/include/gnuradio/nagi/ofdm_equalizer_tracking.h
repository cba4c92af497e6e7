/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/digital/constellation.h>
#include <gnuradio/digital/ofdm_equalizer_base.h>
#include <gnuradio/nagi/api.h>

#include <memory>
#include <vector>

namespace gr {
namespace nagi {

/*! Parameters of ofdm_equalizer_tracking: the signal, and the tracking of the channel. */
struct ofdm_equalizer_tracking_config {
  /*! Constellation of the data carriers, of mean power 1. */
  gr::digital::constellation_sptr constellation;
  /*! Number of carriers. */
  int fft_len = 64;
  /*! Carriers and pilots (occupied_carriers, pilot_carriers, pilot_symbols), as in gr-digital's
      OFDM blocks. */
  std::vector<std::vector<int>> occupied_carriers;
  std::vector<std::vector<int>> pilot_carriers;
  std::vector<std::vector<gr_complex>> pilot_symbols;
  /*! Number of OFDM symbols of the packet before this frame. The first channel estimate comes from
      these symbols and the preamble. */
  int symbols_skipped = 0;
  /*! Delay spread of the channel in samples. With 0, the gains of carriers are estimated
      independently. */
  int delay_spread = 0;
  /*! Weight of the newest symbol in the estimated gain of a carrier, between 0 and 1. */
  double alpha = 0.05;
  /*! Gain of the timing loop, 0 to below 1: share of the timing error of a symbol that the loop
      corrects. With 0, the timing stays as at the start of the frame. */
  double timing_gain = 0.3;
};

/*!
 * \brief OFDM equalizer that tracks the common phase, the timing and the gain of each carrier.
 * \ingroup nagi
 *
 * \details
 * The equalizer is used by gr-digital's ofdm_frame_equalizer_vcvc. gr-digital's own equalizer,
 * ofdm_equalizer_simpledfe, averages the gain of each carrier independently. That equalizer lags
 * behind the residual frequency offset, and its first channel estimate is as noisy as one symbol.
 *
 * This equalizer
 * \li fits the first estimate, and the update from each symbol, to an impulse response of at most
 *     \c delay_spread samples (time-domain channel estimation, J.-J. van de Beek et al., "On
 *     channel estimation in OFDM systems", VTC 1995);
 * \li corrects the common phase error that pilots and decided symbols show, with a second-order
 *     loop;
 * \li corrects the slope of the phase over the carriers with another second-order loop. A
 *     sample-clock offset makes the slope steeper with each symbol;
 * \li averages the gain of each carrier, first over all symbols and later over 1 / \c alpha
 *     symbols.
 *
 * Each frame starts from its own channel estimate only.
 */
class NAGI_API ofdm_equalizer_tracking : public gr::digital::ofdm_equalizer_1d_pilots {
 public:
  using sptr = std::shared_ptr<ofdm_equalizer_tracking>;

  /*! Create an equalizer. The input has DC in the middle (shifted order).

      Throws std::invalid_argument if a value is out of range, or if the values contradict each
      other. */
  static sptr make(const ofdm_equalizer_tracking_config& config);

  explicit ofdm_equalizer_tracking(const ofdm_equalizer_tracking_config& config);

  void equalize(gr_complex* frame, int n_sym, const std::vector<gr_complex>& initial_taps,
                const std::vector<gr::tag_t>& tags) override;

 private:
  void fit_first();
  static std::vector<gr_complex> fitted(const std::vector<gr_complex>& values,
                                        const std::vector<gr_complex>& projection);
  void equalize_symbol(gr_complex* symbol, std::size_t index);

  /*! A second-order loop: a value, and the growth of the value per symbol. */
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
  std::vector<std::size_t> d_active;  // indices of carriers with data or pilots
  std::size_t d_delay_spread = 0;
  // Square matrices with d_active.size() rows, row by row; empty if they are not used.
  std::vector<gr_complex> d_smoothing;
  std::vector<gr_complex> d_first_fit;
  std::vector<gr_complex> d_first_fit_in_noise;
  double d_known_symbols;  // number of symbols from which the first estimate was computed
  double d_alpha;
  double d_timing_gain;
  Loop d_phase;  // rad
  Loop d_slope;  // rad from one carrier to the next
};

}  // namespace nagi
}  // namespace gr
