/* SPDX-License-Identifier: Apache-2.0 */
#include "repeatable_fft_impl.h"

#include <gnuradio/io_signature.h>

#include <algorithm>
#include <mutex>

#include "packet_limits.h"

namespace gr {
namespace nagi {

namespace {

/// Return the mutex of FFTW's planner. Only one thread at a time may create or destroy plans.
std::mutex& planner() {
  static std::mutex mutex;
  return mutex;
}

fftw_plan make_plan(std::complex<double>* buffer, std::size_t size, bool forward) {
  const std::lock_guard lock(planner());
  auto* const values = reinterpret_cast<fftw_complex*>(buffer);
  return fftw_plan_dft_1d(static_cast<int>(size), values, values,
                          forward ? FFTW_FORWARD : FFTW_BACKWARD, FFTW_ESTIMATE);
}

}  // namespace

void repeatable_fft_impl::Destroy::operator()(fftw_plan plan) const {
  const std::lock_guard lock(planner());
  fftw_destroy_plan(plan);
}

repeatable_fft::sptr repeatable_fft::make(int size, bool forward, double scale) {
  const std::size_t checked = in_range("repeatable_fft: size", size, 2, 1 << 16);
  if (checked % 2 != 0) throw std::invalid_argument("repeatable_fft: the size is odd");
  return gnuradio::make_block_sptr<repeatable_fft_impl>(checked, forward, scale);
}

repeatable_fft_impl::repeatable_fft_impl(std::size_t size, bool forward, double scale)
    : gr::sync_block("repeatable_fft",
                     gr::io_signature::make(1, 1, static_cast<int>(size * sizeof(gr_complex))),
                     gr::io_signature::make(1, 1, static_cast<int>(size * sizeof(gr_complex)))),
      size_(size),
      forward_(forward),
      scale_(scale),
      buffer_(static_cast<std::complex<double>*>(fftw_malloc(size * sizeof(std::complex<double>)))),
      plan_(make_plan(buffer_.get(), size, forward)) {}

int repeatable_fft_impl::work(int noutput_items, gr_vector_const_void_star& input_items,
                              gr_vector_void_star& output_items) {
  const auto* in = static_cast<const gr_complex*>(input_items[0]);
  auto* out = static_cast<gr_complex*>(output_items[0]);
  const std::size_t half = size_ / 2;
  std::complex<double>* const values = buffer_.get();
  for (int item = 0; item < noutput_items; ++item, in += size_, out += size_) {
    // The blocks have carrier 0 in the middle, but FFTW has it at the front. The halves of the
    // input of an inverse transform are therefore swapped, as are the halves of the output of a
    // forward transform.
    std::copy_n(in, half, values + (forward_ ? 0 : half));
    std::copy_n(in + half, half, values + (forward_ ? half : 0));
    fftw_execute(plan_.get());
    const std::complex<double>* const first = values + (forward_ ? half : 0);
    const std::complex<double>* const second = values + (forward_ ? 0 : half);
    for (std::size_t i = 0; i < half; ++i) {
      out[i] = gr_complex(scale_ * first[i]);
      out[half + i] = gr_complex(scale_ * second[i]);
    }
  }
  return noutput_items;
}

}  // namespace nagi
}  // namespace gr
