/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/nagi/single_carrier_demod.h>

#include <span>

#include "pulse.h"

namespace gr {
namespace nagi {

class single_carrier_demod_impl : public single_carrier_demod {
 public:
  explicit single_carrier_demod_impl(const single_carrier_demod_config& config);

 private:
  struct State {
    std::complex<double> gain;  // complex gain of the channel
    double frequency;           // rad per symbol
    double lateness;            // of the next symbol, in samples
    double slip;                // growth of `lateness` per symbol, in samples
  };
  /// The previous symbol, which the timing-error detector compares with the next symbol.
  struct Previous {
    std::complex<double> symbol;
    std::complex<double> ideal;
  };

  void demodulate(const pmt::pmt_t& message);
  std::complex<double> filter(std::span<const gr_complex> samples, std::size_t index,
                              double lateness) const;
  State start(std::span<const gr_complex> samples, double timing) const;
  gr_complex track(const std::complex<double>& value, State& state, Previous& before) const;

  gr::digital::constellation_sptr constellation_;
  std::vector<gr_complex> points_;
  std::vector<gr_complex> preamble_;
  std::size_t samples_per_symbol_;
  Pulse pulse_;
  double bandwidth_;
  double timing_gain_;
  double detector_slope_;  // of the timing-error detector, per sample
};

}  // namespace nagi
}  // namespace gr
