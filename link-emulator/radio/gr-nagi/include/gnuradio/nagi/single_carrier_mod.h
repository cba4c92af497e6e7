/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/block.h>
#include <gnuradio/nagi/api.h>

#include <memory>
#include <vector>

namespace gr {
namespace nagi {

/*!
 * \brief A modulator that shapes the symbols of a packet with a root-raised-cosine filter.
 * \ingroup nagi
 *
 * \details
 * Message ports, both of PDUs: in \c symbols, out \c samples. N symbols of mean power 1 and P
 * symbols of preamble become (N + P) samples_per_symbol + 2 span samples_per_symbol samples of mean
 * power 1, including the tails of the filter. The pulse of the first symbol has its peak at sample
 * span * samples_per_symbol.
 */
class NAGI_API single_carrier_mod : virtual public gr::block {
 public:
  using sptr = std::shared_ptr<single_carrier_mod>;

  /*!
   * Create the block.
   *
   * \param preamble            symbols that precede the symbols of every packet
   * \param samples_per_symbol  oversampling: number of samples per symbol, 2 to 64
   * \param rolloff             roll-off factor of the filter, above 0, at most 1
   * \param span                extent of the filter to either side, in symbols, 1 to 64
   *
   * Throws std::invalid_argument if a value is out of range.
   */
  static sptr make(const std::vector<gr_complex>& preamble, int samples_per_symbol, double rolloff,
                   int span);
};

}  // namespace nagi
}  // namespace gr
