/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/block.h>
#include <gnuradio/digital/constellation.h>
#include <gnuradio/nagi/api.h>

#include <memory>
#include <vector>

namespace gr {
namespace nagi {

/*! What single_carrier_demod must know of the signal, and how it follows the channel. */
struct single_carrier_demod_config {
  /*! Of the symbols, mean power 1. */
  gr::digital::constellation_sptr constellation;
  /*! Known symbols before them, which are not put out; may be empty. */
  std::vector<gr_complex> preamble;
  /*! At least 2. */
  int samples_per_symbol = 2;
  /*! Of the filter, above 0, at most 1. */
  double rolloff = 0.35;
  /*! Symbols to either side over which the filter extends. */
  int span = 8;
  /*! Of the loop for gain and phase, in rad per symbol. */
  double bandwidth = 0.05;
  /*! Share of a symbol's timing error by which the timing is corrected, 0 to below 1; 0: it stays
      as it was when the packet began. */
  double timing_gain = 0.01;
};

/*!
 * \brief Gets a packet's symbols back from its samples: matched filter, timing, gain and phase.
 * \ingroup nagi
 *
 * \details
 * Message ports, both of PDUs: in \c samples, out \c symbols. The dictionary has \c item_count
 * (symbols),
 * \c timing (a fraction of a sample by which they come later) and, if no preamble is given,
 * \c single_carrier_state, as it left another such block; \c symbols has it too.
 *
 * \c samples has as many samples beyond those of the symbols as the filter is long.
 *
 * The complex gain comes from the preamble. From there decisions steer gain and phase, and a second
 * order loop the frequency. Another one follows the timing, by the detector of K. H. Mueller and M.
 * Mueller, "Timing recovery in digital synchronous data receivers", IEEE Trans. Commun. 24(5),
 * 1976. gr-digital's loops (costas_loop_cc, constellation_receiver_cb) keep their frequency from
 * one packet to the next; this starts each from nothing but its own samples.
 */
class NAGI_API single_carrier_demod : virtual public gr::block {
 public:
  using sptr = std::shared_ptr<single_carrier_demod>;

  /*! Throws std::invalid_argument if something in \p config makes no sense. */
  static sptr make(const single_carrier_demod_config& config);
};

}  // namespace nagi
}  // namespace gr
