/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/nagi/api.h>
#include <gnuradio/sync_block.h>

#include <memory>

namespace gr {
namespace nagi {

/*!
 * \brief A Fourier transform of vectors whose result is the same to the last bit in every run.
 * \ingroup nagi
 *
 * \details
 * gr-fft's fft_vcc lets FFTW measure which algorithm is the fastest, and stores the choice in
 * ~/.gr_fftw_wisdom of the user. A new measurement can select another algorithm, which changes the
 * last bits of all samples and, rarely, a decision. repeatable_fft calculates in double precision
 * with the algorithm that FFTW selects without measurements (FFTW_ESTIMATE).
 *
 * Input and output are vectors of \c size complex numbers. In the frequency domain, the lowest
 * frequency comes first and DC is in the middle, as in gr-digital's OFDM blocks.
 */
class NAGI_API repeatable_fft : virtual public gr::sync_block {
 public:
  using sptr = std::shared_ptr<repeatable_fft>;

  /*!
   * Create the block.
   *
   * \param size     number of points, even, 2 to 65536
   * \param forward  true to transform from time to frequency; false for the inverse transform,
   *                 without the factor 1 / size
   * \param scale    factor that multiplies the result
   *
   * Throws std::invalid_argument if \p size is odd or out of range.
   */
  static sptr make(int size, bool forward, double scale);
};

}  // namespace nagi
}  // namespace gr
