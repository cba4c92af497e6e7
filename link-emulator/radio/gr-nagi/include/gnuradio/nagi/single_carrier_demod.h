/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/block.h>
#include <gnuradio/digital/constellation.h>
#include <gnuradio/nagi/api.h>

#include <memory>
#include <vector>

namespace gr {
namespace nagi {

/*! Parameters of single_carrier_demod: the signal, and the tracking of the channel. */
struct single_carrier_demod_config {
  /*! Constellation of the symbols, of mean power 1. */
  gr::digital::constellation_sptr constellation;
  /*! Known symbols before the data symbols. The block does not output the preamble. The list may be
      empty. */
  std::vector<gr_complex> preamble;
  /*! Oversampling: number of samples per symbol, 2 to 64. */
  int samples_per_symbol = 2;
  /*! Roll-off factor of the matched filter, above 0, at most 1. */
  double rolloff = 0.35;
  /*! Extent of the filter to either side, in symbols, 1 to 64. */
  int span = 8;
  /*! Bandwidth of the loop for gain and phase, in rad per symbol, between 0 and 1. */
  double bandwidth = 0.05;
  /*! Gain of the timing loop, 0 to below 1: share of the timing error of a symbol that the loop
      corrects. With 0, the timing stays as at the start of the packet. */
  double timing_gain = 0.01;
};

/*!
 * \brief A demodulator that recovers the symbols of a packet: matched filter, timing, gain and
 * phase.
 * \ingroup nagi
 *
 * \details
 * Message ports, both of PDUs: in \c samples, out \c symbols. The dictionary of \c samples has
 * \li \c item_count, the number of symbols, including the preamble;
 * \li \c timing, the fraction of a sample by which the symbols come later, if there is a preamble;
 * \li \c single_carrier_state from the output of another single_carrier_demod, if there is no
 *     preamble.
 *
 * \c symbols has \c single_carrier_state as well. \c samples must extend beyond the symbols by the
 * length of the filter.
 *
 * The preamble gives the first complex gain. From there, decisions correct gain and phase, and a
 * second-order loop tracks the frequency. Another second-order loop tracks the timing, with the
 * timing-error detector of K. H. Mueller and M. Mueller, "Timing recovery in digital synchronous
 * data receivers", IEEE Trans. Commun. 24(5), 1976.
 *
 * gr-digital's loops (costas_loop_cc, constellation_receiver_cb) keep their frequency from one
 * packet to the next. This demodulator estimates each packet from the packet's own samples only.
 */
class NAGI_API single_carrier_demod : virtual public gr::block {
 public:
  using sptr = std::shared_ptr<single_carrier_demod>;

  /*! Create the block.

      Throws std::invalid_argument if a value is out of range. */
  static sptr make(const single_carrier_demod_config& config);
};

}  // namespace nagi
}  // namespace gr
