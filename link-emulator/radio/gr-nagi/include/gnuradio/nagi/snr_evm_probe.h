/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/block.h>
#include <gnuradio/gr_complex.h>
#include <gnuradio/nagi/api.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace gr {
namespace nagi {

/*!
 * \brief Measures how far a packet's symbols lie from its constellation.
 * \ingroup nagi
 *
 * \details
 * Decides each symbol y for the nearest point s. EVM is the root mean square of |y - s| over that
 * of |s|; the SNR estimate is its inverse squared. Decisions are as if correct, so where many are
 * wrong (QPSK: below some 10 dB) the EVM comes out too low and the SNR too high.
 *
 * Message ports:
 * \li in \c symbols: c32 PDUs of a packet's symbols, equalised, on the constellation's scale. Empty
 *     ones throw std::invalid_argument.
 * \li out \c measured: for each a dictionary: that of the PDU, with \c evm_percent and \c snr_db
 *     (double) and \c symbols (long), how many there were
 */
class NAGI_API snr_evm_probe : virtual public gr::block {
 public:
  using sptr = std::shared_ptr<snr_evm_probe>;

  /*!
   * \param points the constellation's. Throws std::invalid_argument if there are none, or all are
   * 0.
   */
  static sptr make(const std::vector<gr_complex>& points);

  /*! Packets measured. */
  virtual std::uint64_t packets() const = 0;
  /*! Of the last packet; NaN before the first. */
  virtual double evm_percent() const = 0;
  /*! Of the last packet, in dB; NaN before the first. */
  virtual double snr_db() const = 0;
};

}  // namespace nagi
}  // namespace gr
