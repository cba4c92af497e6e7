/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/digital/constellation.h>
#include <gnuradio/digital/ofdm_equalizer_base.h>
#include <gnuradio/nagi/api.h>

#include <memory>
#include <vector>

namespace gr {
namespace nagi {

/*!
 * \brief OFDM equalizer that follows the common phase and each carrier's gain.
 * \ingroup nagi
 *
 * \details
 * For gr-digital's ofdm_frame_equalizer_vcvc, like its ofdm_equalizer_simpledfe, which only
 * averages each carrier's gain on its own: it lags behind what is left of a frequency offset, and
 * starts with a channel estimate as noisy as one symbol. This one
 * \li fits the first estimate to an impulse response no longer than \c delay_spread (the channel's
 *     estimate in time, J.-J. van de Beek et al., "On channel estimation in OFDM systems", VTC
 * 1995);
 * \li turns each symbol back by the phase that pilots and decided symbols show in common, with a
 * second order loop;
 * \li averages each carrier's gain, over all symbols at first and over 1 / \c alpha later.
 * Each frame starts from its own estimate only.
 */
class NAGI_API ofdm_equalizer_tracking : public gr::digital::ofdm_equalizer_1d_pilots {
 public:
  using sptr = std::shared_ptr<ofdm_equalizer_tracking>;

  /*!
   * \param constellation      of the data carriers, mean power 1
   * \param fft_len            carriers
   * \param occupied_carriers, pilot_carriers, pilot_symbols  as everywhere in gr-digital's OFDM
   * \param symbols_skipped    symbols of the packet before this frame
   * \param delay_spread       in samples; 0 takes the first estimate as it is
   * \param alpha              share of the newest symbol in a carrier's gain
   *
   * Throws std::invalid_argument if one of them makes no sense. Input is in shifted order.
   */
  static sptr make(gr::digital::constellation_sptr constellation, int fft_len,
                   const std::vector<std::vector<int>>& occupied_carriers,
                   const std::vector<std::vector<int>>& pilot_carriers,
                   const std::vector<std::vector<gr_complex>>& pilot_symbols, int symbols_skipped,
                   int delay_spread, double alpha);

  ofdm_equalizer_tracking(gr::digital::constellation_sptr constellation, int fft_len,
                          const std::vector<std::vector<int>>& occupied_carriers,
                          const std::vector<std::vector<int>>& pilot_carriers,
                          const std::vector<std::vector<gr_complex>>& pilot_symbols,
                          int symbols_skipped, int delay_spread, double alpha);

  void equalize(gr_complex* frame, int n_sym, const std::vector<gr_complex>& initial_taps,
                const std::vector<gr::tag_t>& tags) override;

 private:
  void fit();
  void equalize_symbol(gr_complex* symbol, std::size_t index);

  struct Loop {
    double phase = 0;
    double frequency = 0;
  };

  gr::digital::constellation_sptr d_constellation;
  std::vector<gr_complex> d_points;
  std::vector<std::size_t> d_active;    // carriers with data or pilots
  std::vector<gr_complex> d_smoothing;  // d_active.size() squared, or nothing
  double d_alpha;
  Loop d_loop;
};

}  // namespace nagi
}  // namespace gr
