/* SPDX-License-Identifier: Apache-2.0 */
#include "single_carrier_demod_impl.h"

#include <gnuradio/io_signature.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "packet_limits.h"
#include "pdu.h"

namespace gr {
namespace nagi {

namespace {

const pmt::pmt_t& state_key() {
  static const pmt::pmt_t key = pmt::mp("single_carrier_state");
  return key;
}

constexpr double max_slip = 16;  // samples

/// Return the slope of the timing-error detector: its output for symbols that arrive one sample
/// late. The slope is twice the magnitude of the slope of a raised-cosine pulse at a neighbouring
/// symbol.
double detector_slope(double rolloff, std::size_t samples_per_symbol) {
  const double squeezed = 2 * rolloff;
  const double shape = squeezed == 1
                           ? std::numbers::pi / 4
                           : std::cos(std::numbers::pi * rolloff) / (1 - squeezed * squeezed);
  return 2 * shape / static_cast<double>(samples_per_symbol);
}

}  // namespace

single_carrier_demod::sptr single_carrier_demod::make(const single_carrier_demod_config& config) {
  return gnuradio::make_block_sptr<single_carrier_demod_impl>(config);
}

single_carrier_demod_impl::single_carrier_demod_impl(const single_carrier_demod_config& config)
    : gr::block("single_carrier_demod", gr::io_signature::make(0, 0, 0),
                gr::io_signature::make(0, 0, 0)),
      constellation_(config.constellation),
      points_(config.constellation->points()),
      preamble_(config.preamble),
      samples_per_symbol_(
          in_range("single_carrier_demod: samples_per_symbol", config.samples_per_symbol, 2, 64)),
      pulse_(samples_per_symbol_, config.rolloff,
             in_range("single_carrier_demod: span", config.span, 1, 64)),
      bandwidth_(config.bandwidth),
      timing_gain_(config.timing_gain),
      detector_slope_(detector_slope(config.rolloff, samples_per_symbol_)) {
  if (!(bandwidth_ > 0 && bandwidth_ < 1)) {
    throw std::invalid_argument("single_carrier_demod: bandwidth must be between 0 and 1");
  }
  if (!(timing_gain_ >= 0 && timing_gain_ < 1)) {
    throw std::invalid_argument("single_carrier_demod: timing_gain must be from 0 to below 1");
  }
  message_port_register_in(pmt::mp("samples"));
  set_msg_handler(pmt::mp("samples"), [this](const pmt::pmt_t& message) { demodulate(message); });
  message_port_register_out(pmt::mp("symbols"));
}

void single_carrier_demod_impl::demodulate(const pmt::pmt_t& message) {
  const Pdu pdu = open_pdu(message, "single_carrier_demod");
  std::size_t length = 0;
  const gr_complex* first = pmt::c32vector_elements(pdu.data, length);
  const std::span samples(first, length);
  const auto count = static_cast<std::size_t>(
      pmt::to_long(pmt::dict_ref(pdu.meta, pmt::mp("item_count"), pmt::PMT_NIL)));
  if (count < preamble_.size() ||
      length < (count - 1) * samples_per_symbol_ + pulse_.taps(0).size()) {
    throw std::invalid_argument(
        "single_carrier_demod: a packet has fewer samples than its symbols need");
  }
  State state{};
  if (preamble_.empty()) {
    const auto values = pmt::f64vector_elements(pmt::dict_ref(pdu.meta, state_key(), pmt::PMT_NIL));
    state = {{values.at(0), values.at(1)}, values.at(2), values.at(3), values.at(4)};
  } else {
    const pmt::pmt_t timing = pmt::dict_ref(pdu.meta, pmt::mp("timing"), pmt::PMT_NIL);
    state = start(samples, pmt::to_double(timing));
  }
  std::vector<gr_complex> symbols;
  Previous before{};
  for (std::size_t i = preamble_.size(); i < count; ++i) {
    symbols.push_back(track(filter(samples, i, state.lateness), state, before));
  }
  const std::vector left{state.gain.real(), state.gain.imag(), state.frequency, state.lateness,
                         state.slip};
  const pmt::pmt_t meta =
      pmt::dict_add(pmt::make_dict(), state_key(), pmt::init_f64vector(left.size(), left));
  message_port_pub(pmt::mp("symbols"),
                   pmt::cons(meta, pmt::init_c32vector(symbols.size(), symbols.data())));
}

/// Return the output of the matched filter for symbol `index`, which arrives `lateness` samples
/// late. Samples outside `samples` count as 0.
std::complex<double> single_carrier_demod_impl::filter(std::span<const gr_complex> samples,
                                                       std::size_t index, double lateness) const {
  const double whole = std::nearbyint(lateness);
  const auto& taps = pulse_.taps(lateness - whole);
  const std::ptrdiff_t begin =
      static_cast<std::ptrdiff_t>(index * samples_per_symbol_) + static_cast<std::ptrdiff_t>(whole);
  const std::ptrdiff_t from = std::max<std::ptrdiff_t>(0, -begin);
  const std::ptrdiff_t to = std::min(std::ssize(taps), std::ssize(samples) - begin);
  float real = 0;
  float imag = 0;
  for (std::ptrdiff_t k = from; k < to; ++k) {
    const gr_complex& in = samples[static_cast<std::size_t>(begin + k)];
    const float tap = taps[static_cast<std::size_t>(k)];
    real += in.real() * tap;
    imag += in.imag() * tap;
  }
  return {real, imag};
}

/// Return the state after the preamble. The gain is estimated from all symbols of the preamble.
single_carrier_demod_impl::State single_carrier_demod_impl::start(
    std::span<const gr_complex> samples, double timing) const {
  std::complex<double> sum;
  double energy = 0;
  for (std::size_t i = 0; i < preamble_.size(); ++i) {
    const std::complex<double> symbol(preamble_[i]);
    sum += filter(samples, i, timing) * std::conj(symbol);
    energy += std::norm(symbol);
  }
  return {sum / energy, 0, timing, 0};
}

/// Return one equalised symbol and update the tracking loops in `state`.
gr_complex single_carrier_demod_impl::track(const std::complex<double>& value, State& state,
                                            Previous& before) const {
  state.gain *= std::polar(1.0, state.frequency);
  // The gain is 0 if the packet is cut off.
  const double power = std::norm(state.gain);
  const gr_complex symbol(power > 0 ? value * std::conj(state.gain) / power : 0.0);
  const std::complex<double> ideal(points_[constellation_->decision_maker(&symbol)]);
  // `error` is the relative error of the gain, weighted by the power of the decided point. Points
  // nearer to the origin carry less information about the gain.
  const std::complex<double> seen(symbol);
  const std::complex<double> error = (seen - ideal) * std::conj(ideal);
  state.frequency += 0.25 * bandwidth_ * bandwidth_ * error.imag();
  state.gain *= 1.0 + bandwidth_ * error;
  // The timing-error detector of Mueller and Mueller: two neighbouring symbols that arrive late
  // leak into each other with opposite signs.
  const double late =
      (seen * std::conj(before.ideal) - before.symbol * std::conj(ideal)).real() / detector_slope_;
  // The correction is limited to half a sample, because only noise causes a larger timing error.
  const double correction = std::clamp(late, -0.5, 0.5) * timing_gain_;
  state.slip += 0.25 * timing_gain_ * correction;
  state.lateness = std::clamp(state.lateness + state.slip + correction, -max_slip, max_slip);
  before = {seen, ideal};
  return symbol;
}

}  // namespace nagi
}  // namespace gr
