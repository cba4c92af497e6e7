/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/block.h>
#include <gnuradio/nagi/api.h>

#include <memory>
#include <vector>

namespace gr {
namespace nagi {

/*!
 * \brief Shapes the symbols of a packet with a root-raised-cosine filter.
 * \ingroup nagi
 *
 * \details
 * Message ports, both of PDUs: in \c symbols, out \c samples. For N symbols of mean power 1 and P
 * symbols of preamble, (N + P) samples_per_symbol + 2 span samples_per_symbol samples of mean power
 * 1, filter tails included: the first symbol's pulse has its peak at sample span *
 * samples_per_symbol.
 */
class NAGI_API single_carrier_mod : virtual public gr::block {
 public:
  using sptr = std::shared_ptr<single_carrier_mod>;

  /*!
   * \param preamble            symbols sent before those of every packet
   * \param samples_per_symbol  at least 2
   * \param rolloff             of the filter, above 0, at most 1
   * \param span                symbols to either side over which the filter extends
   *
   * Throws std::invalid_argument if one of them makes no sense.
   */
  static sptr make(const std::vector<gr_complex>& preamble, int samples_per_symbol, double rolloff,
                   int span);
};

}  // namespace nagi
}  // namespace gr
