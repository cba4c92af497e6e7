/* SPDX-License-Identifier: Apache-2.0 */
#include "loss_probe_impl.h"

#include <gnuradio/io_signature.h>

#include "pdu.h"

namespace gr {
namespace nagi {

loss_probe::sptr loss_probe::make() { return gnuradio::make_block_sptr<loss_probe_impl>(); }

loss_probe_impl::loss_probe_impl()
    : gr::block("loss_probe", gr::io_signature::make(0, 0, 0), gr::io_signature::make(0, 0, 0)) {
  message_port_register_in(pmt::mp("outcomes"));
  set_msg_handler(pmt::mp("outcomes"), [this](const pmt::pmt_t& message) { count(message); });
  message_port_register_in(pmt::mp("report"));
  set_msg_handler(pmt::mp("report"), [this](const pmt::pmt_t&) { report(); });
  message_port_register_out(pmt::mp("losses"));
}

void loss_probe_impl::count(const pmt::pmt_t& message) {
  const Pdu pdu = open_pdu(message, "loss_probe");
  const auto outcome = outcome_of(pdu, "loss_probe");
  if (!outcome && pmt::length(pdu.data) == 0) {
    throw std::invalid_argument("loss_probe: an empty PDU has no \"outcome\"");
  }
  ++counts_[static_cast<std::size_t>(outcome.value_or(Outcome::received))];
}

void loss_probe_impl::report() {
  static constexpr std::array<std::pair<Outcome, const char*>, 7> names = {{
      {Outcome::received, "received"},
      {Outcome::not_detected, "not_detected"},
      {Outcome::header_error, "header_error"},
      {Outcome::payload_error, "payload_error"},
      {Outcome::receiver_busy, "receiver_busy"},
      {Outcome::not_sent, "not_sent"},
      {Outcome::not_received, "not_received"},
  }};
  pmt::pmt_t losses = pmt::make_dict();
  for (const auto& [outcome, name] : names) {
    const std::uint64_t count = counts_[static_cast<std::size_t>(outcome)];
    if (outcome > Outcome::payload_error && count == 0) continue;  // only from radio hardware
    losses = pmt::dict_add(losses, pmt::mp(name), pmt::from_uint64(count));
  }
  message_port_pub(pmt::mp("losses"), losses);
}

}  // namespace nagi
}  // namespace gr
