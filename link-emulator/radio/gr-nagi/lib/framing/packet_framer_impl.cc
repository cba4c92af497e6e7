/* SPDX-License-Identifier: Apache-2.0 */
#include "packet_framer_impl.h"

#include <gnuradio/io_signature.h>

#include "pdu.h"

namespace gr {
namespace nagi {

namespace {
constexpr const char* me = "packet_framer";
}

packet_framer::sptr packet_framer::make(const std::vector<std::string>& code_rates, bool whiten,
                                        std::size_t max_payload) {
  return gnuradio::make_block_sptr<packet_framer_impl>(code_rates_from_names(code_rates), whiten,
                                                       max_payload);
}

packet_framer_impl::packet_framer_impl(const std::vector<code_rate>& rates, bool whiten,
                                       std::size_t max_payload)
    : gr::block(me, gr::io_signature::make(0, 0, 0), gr::io_signature::make(0, 0, 0)) {
  for (const code_rate rate : rates) {
    framings_.push_back(std::make_unique<framing>(rate, whiten, max_payload));
  }
  message_port_register_in(pmt::mp("packets"));
  set_msg_handler(pmt::mp("packets"), [this](const pmt::pmt_t& message) { frame(message); });
  message_port_register_out(pmt::mp("frames"));
}

void packet_framer_impl::frame(const pmt::pmt_t& message) {
  Pdu pdu = open_pdu(message, me);
  if (!pmt::dict_has_key(pdu.meta, key::number())) {
    pdu.meta = pmt::dict_add(pdu.meta, key::number(), pmt::from_uint64(next_number_++));
  }
  const auto sequence = static_cast<std::uint32_t>(number_of(pdu, me));
  framing& chosen = *framings_[mode_of(pdu, framings_.size(), me)];
  message_port_pub(pmt::mp("frames"),
                   make_pdu(pdu.meta, chosen.frame(sequence, bytes_of(pdu, me))));
}

}  // namespace nagi
}  // namespace gr
