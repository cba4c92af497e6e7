/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/nagi/api.h>
#include <gnuradio/sync_block.h>

#include <memory>

namespace gr {
namespace nagi {

/*!
 * \brief Fourier transform of vectors that gives the same to the last bit in every run.
 * \ingroup nagi
 *
 * \details
 * gr-fft's fft_vcc lets FFTW try which of its algorithms is the fastest, and keeps that per user in
 * ~/.gr_fftw_wisdom: another try, and the last bits of all samples are others, and now and then a
 * decision. This one calculates in double precision by the algorithm that FFTW chooses without
 * trying.
 *
 * Vectors of \c size complex numbers in and out. In the frequency domain the lowest frequency comes
 * first (the carrier in the middle), as gr-digital's OFDM blocks have it.
 */
class NAGI_API repeatable_fft : virtual public gr::sync_block {
 public:
  using sptr = std::shared_ptr<repeatable_fft>;

  /*!
   * \param size     even
   * \param forward  from time to frequency; else back, without a factor
   * \param scale    by which all is multiplied
   *
   * Throws std::invalid_argument if the size makes no sense.
   */
  static sptr make(int size, bool forward, double scale);
};

}  // namespace nagi
}  // namespace gr
