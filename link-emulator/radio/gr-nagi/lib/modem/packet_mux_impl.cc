/* SPDX-License-Identifier: Apache-2.0 */
#include "packet_mux_impl.h"

#include <gnuradio/io_signature.h>

#include <algorithm>

#include "packet_limits.h"
#include "pdu.h"

namespace gr {
namespace nagi {

packet_mux::sptr packet_mux::make(const packet_mux_config& config) {
  return gnuradio::make_block_sptr<packet_mux_impl>(config);
}

packet_mux_impl::packet_mux_impl(const packet_mux_config& config)
    : gr::block("packet_mux", gr::io_signature::make(0, 0, 0), gr::io_signature::make(0, 0, 0)),
      symbols_(config.constellations, config.header_symbols),
      block_(in_range("packet_mux: block", config.block, 1, 4096)),
      longest_(in_range("packet_mux: longest", config.longest, 1, PacketSymbols::longest)),
      guard_(in_range("packet_mux: guard", config.guard, 0, 1 << 20)),
      tail_(in_range("packet_mux: tail", config.tail, 0, 1 << 20)) {
  lose_no_messages();
  message_port_register_in(pmt::mp("pdus"));
  set_msg_handler(pmt::mp("pdus"), [this](const pmt::pmt_t& message) { take(message); });
  message_port_register_in(pmt::mp("samples"));
  set_msg_handler(pmt::mp("samples"), [this](const pmt::pmt_t& message) { finish(message); });
  message_port_register_out(pmt::mp("symbols"));
  message_port_register_out(pmt::mp("bursts"));
}

void packet_mux_impl::take(const pmt::pmt_t& message) {
  const Pdu pdu = open_pdu(message, "packet_mux");
  const std::size_t size = bytes_of(pdu, "packet_mux").size();
  const bool fits = size >= 1 && size <= longest_;
  if (!fits) {
    // The macro is not used to format text. In C++20, the older loggers of GNU Radio cannot format,
    // and the newer loggers accept only constant format strings.
    GR_LOG_ERROR(d_logger, "packet " + std::to_string(number_of(pdu, "packet_mux")) + " has " +
                               std::to_string(size) + " bytes, not 1 to " +
                               std::to_string(longest_) + ": it is not sent");
  }
  packets_.push_back({pdu.meta, fits ? pdu.data : pmt::PMT_NIL});
  feed();
}

void packet_mux_impl::feed() {
  refuse();
  while (modulating_ < packets_.size() && modulating_ < max_in_flight) {
    const Packet& packet = packets_[modulating_];
    // refuse() removes this packet when all packets before it are done.
    if (pmt::is_null(packet.bytes)) return;
    const Pdu pdu{packet.meta, packet.bytes};
    const auto bytes = bytes_of(pdu, "packet_mux");
    std::vector<gr_complex> symbols;
    const std::size_t mode = mode_of(pdu, symbols_.modes(), "packet_mux");
    symbols_.append_header({bytes.size(), mode}, number_of(pdu, "packet_mux"), symbols);
    symbols_.append_payload(bytes, mode, block_, symbols);
    pmt::pmt_t meta = pmt::make_dict();
    meta = pmt::dict_add(meta, pmt::mp("symbol_count"),
                         pmt::from_long(static_cast<long>(symbols.size())));
    ++modulating_;
    message_port_pub(pmt::mp("symbols"),
                     pmt::cons(meta, pmt::init_c32vector(symbols.size(), symbols.data())));
  }
}

/// Publish an empty burst for each packet at the front that cannot be sent. The order of the
/// packets is kept.
void packet_mux_impl::refuse() {
  while (modulating_ == 0 && !packets_.empty() && pmt::is_null(packets_.front().bytes)) {
    message_port_pub(pmt::mp("bursts"),
                     pmt::cons(packets_.front().meta, pmt::make_c32vector(0, gr_complex())));
    packets_.pop_front();
  }
}

void packet_mux_impl::finish(const pmt::pmt_t& message) {
  if (modulating_ == 0) throw std::logic_error("packet_mux: samples without a packet");
  const Pdu pdu = open_pdu(message, "packet_mux");
  std::size_t size = 0;
  const gr_complex* samples = pmt::c32vector_elements(pdu.data, size);
  pmt::pmt_t burst = pmt::make_c32vector(guard_ + size + tail_, gr_complex());
  std::size_t length = 0;
  std::copy_n(samples, size, pmt::c32vector_writable_elements(burst, length) + guard_);
  message_port_pub(pmt::mp("bursts"), pmt::cons(packets_.front().meta, burst));
  packets_.pop_front();
  --modulating_;
  feed();
}

}  // namespace nagi
}  // namespace gr
