/* SPDX-License-Identifier: Apache-2.0 */
#include "snr_evm_probe_impl.h"

#include <gnuradio/io_signature.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "pdu.h"

namespace gr {
namespace nagi {

namespace {
constexpr const char* me = "snr_evm_probe";
}

snr_evm_probe::sptr snr_evm_probe::make(const std::vector<gr_complex>& points) {
  return gnuradio::make_block_sptr<snr_evm_probe_impl>(points);
}

snr_evm_probe_impl::snr_evm_probe_impl(const std::vector<gr_complex>& points)
    : gr::block(me, gr::io_signature::make(0, 0, 0), gr::io_signature::make(0, 0, 0)),
      points_(points) {
  if (std::ranges::all_of(points, [](gr_complex point) { return std::norm(point) == 0.0F; })) {
    throw std::invalid_argument(std::string(me) + ": points: there are no points except 0");
  }
  message_port_register_in(pmt::mp("symbols"));
  set_msg_handler(pmt::mp("symbols"), [this](const pmt::pmt_t& message) { measure(message); });
  message_port_register_out(pmt::mp("measured"));
}

gr_complex snr_evm_probe_impl::nearest(gr_complex symbol) const {
  return *std::ranges::min_element(
      points_, {}, [symbol](gr_complex point) { return std::norm(symbol - point); });
}

void snr_evm_probe_impl::measure(const pmt::pmt_t& message) {
  const Pdu pdu = open_pdu(message, me);
  const auto symbols = samples_of(pdu, me);
  if (symbols.empty()) throw std::invalid_argument(std::string(me) + ": a PDU without symbols");
  double signal = 0.0;
  double error = 0.0;
  for (const gr_complex symbol : symbols) {
    const gr_complex point = nearest(symbol);
    signal += double{std::norm(point)};
    error += double{std::norm(symbol - point)};
  }
  const double ratio = error / signal;
  evm_percent_ = 100.0 * std::sqrt(ratio);
  snr_db_ = -10.0 * std::log10(ratio);
  ++packets_;

  pmt::pmt_t measured =
      pmt::dict_add(pdu.meta, pmt::mp("evm_percent"), pmt::from_double(evm_percent_));
  measured = pmt::dict_add(measured, key::snr_db(), pmt::from_double(snr_db_));
  measured = pmt::dict_add(measured, pmt::mp("symbols"),
                           pmt::from_long(static_cast<long>(symbols.size())));
  message_port_pub(pmt::mp("measured"), measured);
}

}  // namespace nagi
}  // namespace gr
