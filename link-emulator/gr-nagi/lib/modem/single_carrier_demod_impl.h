/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/nagi/single_carrier_demod.h>

#include <span>

#include "pulse.h"

namespace gr {
namespace nagi {

class single_carrier_demod_impl : public single_carrier_demod {
 public:
  single_carrier_demod_impl(const gr::digital::constellation_sptr& constellation,
                            std::vector<gr_complex> preamble, std::size_t samples_per_symbol,
                            double rolloff, std::size_t span, double bandwidth);

 private:
  struct State {
    std::complex<double> gain;  // of the channel, with its phase
    double frequency;           // rad per symbol
  };

  void demodulate(const pmt::pmt_t& message);
  std::vector<std::complex<double>> filter(std::span<const gr_complex> samples, std::size_t count,
                                           double timing) const;
  State start(std::span<const std::complex<double>> known) const;
  gr_complex track(const std::complex<double>& value, State& state) const;

  gr::digital::constellation_sptr constellation_;
  std::vector<gr_complex> points_;
  std::vector<gr_complex> preamble_;
  std::size_t samples_per_symbol_;
  Pulse pulse_;
  double bandwidth_;
};

}  // namespace nagi
}  // namespace gr
