/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <fftw3.h>
#include <gnuradio/nagi/repeatable_fft.h>

#include <complex>

namespace gr {
namespace nagi {

class repeatable_fft_impl : public repeatable_fft {
 public:
  repeatable_fft_impl(std::size_t size, bool forward, double scale);

  int work(int noutput_items, gr_vector_const_void_star& input_items,
           gr_vector_void_star& output_items) override;

 private:
  struct Free {
    void operator()(void* memory) const { fftw_free(memory); }
  };
  struct Destroy {
    void operator()(fftw_plan plan) const;
  };

  std::size_t size_;
  bool forward_;
  double scale_;
  std::unique_ptr<std::complex<double>, Free> buffer_;
  std::unique_ptr<std::remove_pointer_t<fftw_plan>, Destroy> plan_;
};

}  // namespace nagi
}  // namespace gr
