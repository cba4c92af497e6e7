/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/block.h>
#include <gnuradio/digital/constellation.h>
#include <gnuradio/nagi/api.h>

#include <memory>
#include <vector>

namespace gr {
namespace nagi {

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
 * The complex gain comes from the preamble. From there decisions steer gain and phase, and a second
 * order loop the frequency. gr-digital's loops (costas_loop_cc, constellation_receiver_cb) keep
 * their frequency from one packet to the next; this starts each from nothing but its own samples.
 */
class NAGI_API single_carrier_demod : virtual public gr::block {
 public:
  using sptr = std::shared_ptr<single_carrier_demod>;

  /*!
   * \param constellation       of the symbols, mean power 1
   * \param preamble            known symbols before them, which are not put out; may be empty
   * \param samples_per_symbol  at least 2
   * \param rolloff             of the filter, above 0, at most 1
   * \param span                symbols to either side over which the filter extends
   * \param bandwidth           of the loop, in rad per symbol
   *
   * Throws std::invalid_argument if one of them makes no sense.
   */
  static sptr make(gr::digital::constellation_sptr constellation,
                   const std::vector<gr_complex>& preamble, int samples_per_symbol, double rolloff,
                   int span, double bandwidth);
};

}  // namespace nagi
}  // namespace gr
