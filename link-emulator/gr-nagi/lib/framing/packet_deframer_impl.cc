/* SPDX-License-Identifier: Apache-2.0 */
#include "packet_deframer_impl.h"

#include <gnuradio/io_signature.h>

#include "pdu.h"

namespace gr {
namespace nagi {

namespace {
constexpr const char* me = "packet_deframer";
}

packet_deframer::sptr packet_deframer::make(const std::string& fec, bool whiten,
                                            std::size_t max_payload) {
  return gnuradio::make_block_sptr<packet_deframer_impl>(fec_from_name(fec), whiten, max_payload);
}

packet_deframer_impl::packet_deframer_impl(fec_type fec, bool whiten, std::size_t max_payload)
    : gr::block(me, gr::io_signature::make(0, 0, 0), gr::io_signature::make(0, 0, 0)),
      framing_(fec, whiten, max_payload) {
  message_port_register_in(pmt::mp("frames"));
  set_msg_handler(pmt::mp("frames"), [this](const pmt::pmt_t& message) { deframe(message); });
  message_port_register_out(pmt::mp("packets"));
}

void packet_deframer_impl::deframe(const pmt::pmt_t& message) {
  const Pdu pdu = open_pdu(message, me);
  if (outcome_of(pdu, me).value_or(Outcome::received) != Outcome::received) {
    message_port_pub(pmt::mp("packets"), message);
    return;
  }
  auto content = framing_.deframe(bytes_of(pdu, me));
  if (content && pmt::dict_has_key(pdu.meta, key::number()) &&
      content->sequence != static_cast<std::uint32_t>(number_of(pdu, me))) {
    content.reset();
  }
  const Outcome outcome = content ? Outcome::received : Outcome::payload_error;
  const auto meta =
      pmt::dict_add(pdu.meta, key::outcome(), pmt::from_long(static_cast<long>(outcome)));
  message_port_pub(pmt::mp("packets"),
                   make_pdu(meta, content ? std::span<const std::uint8_t>(content->payload)
                                          : std::span<const std::uint8_t>{}));
}

}  // namespace nagi
}  // namespace gr
