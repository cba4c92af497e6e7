/* SPDX-License-Identifier: Apache-2.0 */
#include "packet_deframer_impl.h"

#include <gnuradio/io_signature.h>

#include "pdu.h"

namespace gr {
namespace nagi {

namespace {
constexpr const char* me = "packet_deframer";

/// Deframe a PDU by soft decisions if the PDU has them and the framing has a code, else by its
/// bytes.
std::optional<framing::content> take_apart(framing& framing, const Pdu& pdu) {
  const pmt::pmt_t soft = pmt::dict_ref(pdu.meta, key::soft_bits(), pmt::PMT_NIL);
  const auto bytes = bytes_of(pdu, me);
  if (pmt::is_null(soft) || !framing.is_coded()) return framing.deframe(bytes);
  std::size_t count = 0;
  const float* first = pmt::f32vector_elements(soft, count);
  if (count != 8 * bytes.size()) {
    throw std::invalid_argument(std::string(me) + ": " + std::to_string(count) +
                                " soft bits of a frame of " + std::to_string(bytes.size()) +
                                " bytes");
  }
  return framing.deframe_soft({first, count});
}

}  // namespace

packet_deframer::sptr packet_deframer::make(const std::vector<std::string>& code_rates, bool whiten,
                                            std::size_t max_payload) {
  return gnuradio::make_block_sptr<packet_deframer_impl>(code_rates_from_names(code_rates), whiten,
                                                         max_payload);
}

packet_deframer_impl::packet_deframer_impl(const std::vector<code_rate>& rates, bool whiten,
                                           std::size_t max_payload)
    : gr::block(me, gr::io_signature::make(0, 0, 0), gr::io_signature::make(0, 0, 0)) {
  for (const code_rate rate : rates) {
    framings_.push_back(std::make_unique<framing>(rate, whiten, max_payload));
  }
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
  framing& chosen = *framings_[mode_of(pdu, framings_.size(), me)];
  auto content = take_apart(chosen, pdu);
  if (content && pmt::dict_has_key(pdu.meta, key::number()) &&
      content->sequence != static_cast<std::uint32_t>(number_of(pdu, me))) {
    content.reset();
  }
  const Outcome outcome = content ? Outcome::received : Outcome::payload_error;
  const auto meta = pmt::dict_add(pmt::dict_delete(pdu.meta, key::soft_bits()), key::outcome(),
                                  pmt::from_long(static_cast<long>(outcome)));
  message_port_pub(pmt::mp("packets"),
                   make_pdu(meta, content ? std::span<const std::uint8_t>(content->payload)
                                          : std::span<const std::uint8_t>{}));
}

}  // namespace nagi
}  // namespace gr
