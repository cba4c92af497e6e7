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
 * \brief A probe that measures the deviation of a packet's symbols from the constellation.
 * \ingroup nagi
 *
 * \details
 * The probe decides for each symbol y the nearest point s. The EVM is the root mean square of |y -
 * s| over the root mean square of |s|. The SNR estimate is 1 / EVM^2. The probe assumes that
 * decisions are correct. If many decisions are wrong (QPSK: below about 10 dB), the EVM is too low
 * and the SNR too high.
 *
 * Message ports:
 * \li in \c symbols: c32 PDUs of a packet's symbols, equalised, on the scale of the constellation.
 *     PDUs without symbols throw std::invalid_argument.
 * \li out \c measured: one dictionary per PDU: the PDU's dictionary with \c evm_percent and
 *     \c snr_db (double) and \c symbols (long), the number of symbols
 */
class NAGI_API snr_evm_probe : virtual public gr::block {
 public:
  using sptr = std::shared_ptr<snr_evm_probe>;

  /*!
   * Create the block.
   *
   * \param points points of the constellation
   *
   * Throws std::invalid_argument if there are no points, or if all points are 0.
   */
  static sptr make(const std::vector<gr_complex>& points);

  /*! Return the number of measured packets. */
  virtual std::uint64_t packets() const = 0;
  /*! Return the EVM of the last packet in percent, or NaN before the first packet. */
  virtual double evm_percent() const = 0;
  /*! Return the SNR of the last packet in dB, or NaN before the first packet. */
  virtual double snr_db() const = 0;
};

}  // namespace nagi
}  // namespace gr
