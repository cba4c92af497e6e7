/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/nagi/single_carrier_mod.h>

namespace gr {
namespace nagi {

class single_carrier_mod_impl : public single_carrier_mod {
 public:
  single_carrier_mod_impl(std::vector<gr_complex> preamble, std::size_t samples_per_symbol,
                          double rolloff, std::size_t span);

 private:
  void modulate(const pmt::pmt_t& message);

  std::vector<gr_complex> preamble_;
  std::size_t samples_per_symbol_;
  std::vector<float> taps_;
};

}  // namespace nagi
}  // namespace gr
