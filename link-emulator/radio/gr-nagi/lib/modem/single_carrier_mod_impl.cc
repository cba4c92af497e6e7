/* SPDX-License-Identifier: Apache-2.0 */
#include "single_carrier_mod_impl.h"

#include <gnuradio/io_signature.h>

#include "packet_limits.h"
#include "pdu.h"
#include "pulse.h"

namespace gr {
namespace nagi {

single_carrier_mod::sptr single_carrier_mod::make(const std::vector<gr_complex>& preamble,
                                                  int samples_per_symbol, double rolloff,
                                                  int span) {
  return gnuradio::make_block_sptr<single_carrier_mod_impl>(
      preamble, in_range("single_carrier_mod: samples_per_symbol", samples_per_symbol, 2, 64),
      rolloff, in_range("single_carrier_mod: span", span, 1, 64));
}

single_carrier_mod_impl::single_carrier_mod_impl(std::vector<gr_complex> preamble,
                                                 std::size_t samples_per_symbol, double rolloff,
                                                 std::size_t span)
    : gr::block("single_carrier_mod", gr::io_signature::make(0, 0, 0),
                gr::io_signature::make(0, 0, 0)),
      preamble_(std::move(preamble)),
      samples_per_symbol_(samples_per_symbol),
      taps_(Pulse(samples_per_symbol, rolloff, span).taps(0)) {
  message_port_register_in(pmt::mp("symbols"));
  set_msg_handler(pmt::mp("symbols"), [this](const pmt::pmt_t& message) { modulate(message); });
  message_port_register_out(pmt::mp("samples"));
}

void single_carrier_mod_impl::modulate(const pmt::pmt_t& message) {
  const Pdu pdu = open_pdu(message, "single_carrier_mod");
  std::size_t count = 0;
  const gr_complex* symbols = pmt::c32vector_elements(pdu.data, count);
  const std::size_t total = preamble_.size() + count;
  pmt::pmt_t result =
      pmt::make_c32vector(total * samples_per_symbol_ + taps_.size() - 1, gr_complex());
  std::size_t length = 0;
  gr_complex* out = pmt::c32vector_writable_elements(result, length);
  for (std::size_t i = 0; i < total; ++i, out += samples_per_symbol_) {
    const gr_complex symbol = i < preamble_.size() ? preamble_[i] : symbols[i - preamble_.size()];
    for (std::size_t k = 0; k < taps_.size(); ++k) out[k] += symbol * taps_[k];
  }
  message_port_pub(pmt::mp("samples"), pmt::cons(pdu.meta, result));
}

}  // namespace nagi
}  // namespace gr
