/* SPDX-License-Identifier: Apache-2.0 */
#include "packet_port_impl.h"

#include <gnuradio/io_signature.h>
#include <poll.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>

#include "pdu.h"

namespace gr {
namespace nagi {

namespace {

constexpr const char* me = "packet_port";

std::unique_ptr<PacketIo> open_kind(const std::string& interface, const std::string& kind) {
  if (kind == "af_packet") return open_interface(interface);
  if (kind == "tun") return open_tun(interface);
  throw std::invalid_argument("packet_port: kind: \"" + kind +
                              R"(" is not one of "af_packet", "tun")");
}

}  // namespace

packet_port::sptr packet_port::make(const std::string& interface, const std::string& kind) {
  return gnuradio::make_block_sptr<packet_port_impl>(open_kind(interface, kind));
}

packet_port_impl::packet_port_impl(std::unique_ptr<PacketIo> io)
    : gr::block(me, gr::io_signature::make(0, 0, 0), gr::io_signature::make(0, 0, 0)),
      io_(std::move(io)),
      sender_([this](std::int64_t now_ns) { return send_due(now_ns); }) {
  message_port_register_out(pmt::mp("frames"));
  message_port_register_in(pmt::mp("frames"));
  set_msg_handler(pmt::mp("frames"), [this](const pmt::pmt_t& message) { take(message); });
}

packet_port_impl::~packet_port_impl() { stop(); }

bool packet_port_impl::start() {
  stopping_.clear();
  if (!reader_.joinable()) reader_ = std::thread([this] { read_frames(); });
  sender_.start();
  return gr::block::start();
}

bool packet_port_impl::stop() {
  stopping_.set();
  if (reader_.joinable()) reader_.join();
  sender_.stop();
  return gr::block::stop();
}

std::uint64_t packet_port_impl::discarded() const {
  const auto counters = io_->counters();
  return counters.socket_drops + counters.oversized;
}

void packet_port_impl::read_frames() {
  const pmt::pmt_t arrived = pmt::mp("arrived_ns");
  const pmt::pmt_t port = pmt::mp("frames");
  try {
    while (wait_readable()) {
      io_->receive([&](std::span<const std::uint8_t> packet, std::int64_t arrived_ns) {
        const auto meta = pmt::dict_add(pmt::make_dict(), arrived, pmt::from_long(arrived_ns));
        message_port_pub(port, make_pdu(meta, packet));
      });
    }
  } catch (const std::system_error& error) {
    GR_LOG_ERROR(d_logger, std::string("the interface is gone: ") + error.what());
    _post(pmt::mp("system"), pmt::cons(pmt::mp("done"), pmt::from_long(1)));
  }
}

/// Wait until the interface is readable. Return false if this block is being stopped.
bool packet_port_impl::wait_readable() const {
  pollfd descriptors[] = {{io_->descriptor(), POLLIN, 0}, {stopping_.descriptor(), POLLIN, 0}};
  while (poll(descriptors, 2, -1) < 0 && errno == EINTR) {
  }
  return descriptors[1].revents == 0;
}

void packet_port_impl::take(const pmt::pmt_t& message) {
  const Pdu pdu = open_pdu(message, me);
  const auto bytes = bytes_of(pdu, me);
  const pmt::pmt_t due = pmt::dict_ref(pdu.meta, pmt::mp("due_ns"), pmt::PMT_NIL);
  if (!pmt::is_integer(due) || pmt::to_long(due) <= ::nagi::io::read_clock(CLOCK_MONOTONIC)) {
    io_->send(bytes);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    waiting_.emplace(pmt::to_long(due), pdu.data);
  }
  sender_.wake();
}

std::optional<std::int64_t> packet_port_impl::send_due(std::int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  while (!waiting_.empty() && waiting_.begin()->first <= now_ns) {
    io_->send(bytes_of({pmt::PMT_NIL, waiting_.begin()->second}, me));
    waiting_.erase(waiting_.begin());
  }
  if (waiting_.empty()) return std::nullopt;
  return waiting_.begin()->first;
}

}  // namespace nagi
}  // namespace gr
