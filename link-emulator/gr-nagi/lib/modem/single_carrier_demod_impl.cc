/* SPDX-License-Identifier: Apache-2.0 */
#include "single_carrier_demod_impl.h"

#include <gnuradio/io_signature.h>

#include "packet_limits.h"
#include "pdu.h"

namespace gr {
namespace nagi {

namespace {

const pmt::pmt_t& state_key() {
  static const pmt::pmt_t key = pmt::mp("single_carrier_state");
  return key;
}

}  // namespace

single_carrier_demod::sptr single_carrier_demod::make(gr::digital::constellation_sptr constellation,
                                                      const std::vector<gr_complex>& preamble,
                                                      int samples_per_symbol, double rolloff,
                                                      int span, double bandwidth) {
  return gnuradio::make_block_sptr<single_carrier_demod_impl>(
      constellation, preamble,
      in_range("single_carrier_demod: samples_per_symbol", samples_per_symbol, 2, 64), rolloff,
      in_range("single_carrier_demod: span", span, 1, 64), bandwidth);
}

single_carrier_demod_impl::single_carrier_demod_impl(
    const gr::digital::constellation_sptr& constellation, std::vector<gr_complex> preamble,
    std::size_t samples_per_symbol, double rolloff, std::size_t span, double bandwidth)
    : gr::block("single_carrier_demod", gr::io_signature::make(0, 0, 0),
                gr::io_signature::make(0, 0, 0)),
      constellation_(constellation),
      points_(constellation->points()),
      preamble_(std::move(preamble)),
      samples_per_symbol_(samples_per_symbol),
      pulse_(samples_per_symbol, rolloff, span),
      bandwidth_(bandwidth) {
  if (!(bandwidth > 0 && bandwidth < 1)) {
    throw std::invalid_argument(
        "single_carrier_demod: the loop's bandwidth is not between 0 and 1");
  }
  message_port_register_in(pmt::mp("samples"));
  set_msg_handler(pmt::mp("samples"), [this](const pmt::pmt_t& message) { demodulate(message); });
  message_port_register_out(pmt::mp("symbols"));
}

void single_carrier_demod_impl::demodulate(const pmt::pmt_t& message) {
  const Pdu pdu = open_pdu(message, "single_carrier_demod");
  std::size_t length = 0;
  const gr_complex* samples = pmt::c32vector_elements(pdu.data, length);
  const auto count = static_cast<std::size_t>(
      pmt::to_long(pmt::dict_ref(pdu.meta, pmt::mp("item_count"), pmt::PMT_NIL)));
  const double timing = pmt::to_double(pmt::dict_ref(pdu.meta, pmt::mp("timing"), pmt::PMT_NIL));
  const auto values = filter({samples, length}, count, timing);
  State state{};
  if (preamble_.empty()) {
    const auto given = pmt::f64vector_elements(pmt::dict_ref(pdu.meta, state_key(), pmt::PMT_NIL));
    state = {{given.at(0), given.at(1)}, given.at(2)};
  } else {
    state = start(std::span(values).first(preamble_.size()));
  }
  std::vector<gr_complex> symbols;
  for (std::size_t i = preamble_.size(); i < count; ++i) symbols.push_back(track(values[i], state));
  const pmt::pmt_t meta = pmt::dict_add(
      pmt::make_dict(), state_key(),
      pmt::init_f64vector(3, std::vector{state.gain.real(), state.gain.imag(), state.frequency}));
  message_port_pub(pmt::mp("symbols"),
                   pmt::cons(meta, pmt::init_c32vector(symbols.size(), symbols.data())));
}

/// The matched filter's output at the symbols' instants.
std::vector<std::complex<double>> single_carrier_demod_impl::filter(
    std::span<const gr_complex> samples, std::size_t count, double timing) const {
  const auto taps = pulse_.taps(timing);
  if (count < preamble_.size() ||
      samples.size() < (count - 1) * samples_per_symbol_ + taps.size()) {
    throw std::invalid_argument("single_carrier_demod: fewer samples than its symbols need");
  }
  std::vector<std::complex<double>> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const gr_complex* in = &samples[i * samples_per_symbol_];
    float real = 0;
    float imag = 0;
    for (std::size_t k = 0; k < taps.size(); ++k) {
      real += in[k].real() * taps[k];
      imag += in[k].imag() * taps[k];
    }
    values[i] = {real, imag};
  }
  return values;
}

/// The gain after the preamble, from all of it.
single_carrier_demod_impl::State single_carrier_demod_impl::start(
    std::span<const std::complex<double>> known) const {
  std::complex<double> sum;
  double energy = 0;
  for (std::size_t i = 0; i < known.size(); ++i) {
    const std::complex<double> symbol(preamble_[i]);
    sum += known[i] * std::conj(symbol);
    energy += std::norm(symbol);
  }
  return {sum / energy, 0};
}

/// One symbol, and what it teaches.
gr_complex single_carrier_demod_impl::track(const std::complex<double>& value, State& state) const {
  state.gain *= std::polar(1.0, state.frequency);
  // A gain of nothing at all: a packet that is cut off.
  const double power = std::norm(state.gain);
  const gr_complex symbol(power > 0 ? value * std::conj(state.gain) / power : 0.0);
  const std::complex<double> ideal(points_[constellation_->decision_maker(&symbol)]);
  // What the gain should have been times, in units of the decided point's power: points nearer to
  // the origin know less.
  const std::complex<double> error = (std::complex<double>(symbol) - ideal) * std::conj(ideal);
  state.frequency += 0.25 * bandwidth_ * bandwidth_ * error.imag();
  state.gain *= 1.0 + bandwidth_ * error;
  return symbol;
}

}  // namespace nagi
}  // namespace gr
