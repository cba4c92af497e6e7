/* SPDX-License-Identifier: Apache-2.0 */
#include "link_impl.h"

#include <gnuradio/io_signature.h>
#include <linux/if_ether.h>

#include <algorithm>
#include <stdexcept>

#include "io/ip_header.hpp"
#include "link_config.h"

namespace gr {
namespace nagi {

namespace model = ::nagi::model;

namespace {

constexpr const char* me = "link";

const pmt::pmt_t& due_ns() {
  static const pmt::pmt_t symbol = pmt::mp("due_ns");
  return symbol;
}

bool one_of_two(const std::string& key, const std::string& value, const std::string& first,
                const std::string& second) {
  if (value != first && value != second) {
    throw std::invalid_argument("link: " + key + ": \"" + value + "\" is not \"" + first +
                                "\" or \"" + second + '"');
  }
  return value == second;
}

const char* name_of(model::Fate fate) {
  switch (fate) {
    case model::Fate::queue_overflow:
      return "queue_overflow";
    case model::Fate::aqm_drop:
      return "aqm_drop";
    default:
      return "channel_loss";
  }
}

/// Return the packet as an Ethernet frame, the format that IpHeader reads.
std::vector<std::uint8_t> as_frame(std::span<const std::uint8_t> bytes, bool is_ethernet) {
  if (is_ethernet) return {bytes.begin(), bytes.end()};
  const unsigned type = !bytes.empty() && bytes[0] >> 4 == 6 ? ETH_P_IPV6 : ETH_P_IP;
  std::vector<std::uint8_t> frame(ETH_HLEN + bytes.size());
  frame[12] = static_cast<std::uint8_t>(type >> 8);
  frame[13] = static_cast<std::uint8_t>(type);
  std::ranges::copy(bytes, frame.begin() + ETH_HLEN);
  return frame;
}

/// Mark or corrupt the packet in `pdu`, as the model decided.
void change(Pdu& pdu, const model::Packet& packet, bool is_ethernet) {
  auto frame = as_frame(bytes_of(pdu, me), is_ethernet);
  ::nagi::io::IpHeader header({frame.data(), frame.size()});
  if (packet.marked) header.mark();
  if (packet.corrupted) header.corrupt();
  const std::size_t added = is_ethernet ? 0 : ETH_HLEN;
  pdu.data = pmt::init_u8vector(frame.size() - added, frame.data() + added);
}

}  // namespace

link::sptr link::make(const std::string& config_json, std::uint64_t seed, std::uint32_t id,
                      const std::string& direction, const std::string& carries) {
  const auto name = one_of_two("direction", direction, "forward", "backward")
                        ? model::DirectionName::backward
                        : model::DirectionName::forward;
  return gnuradio::make_block_sptr<link_impl>(read_link_config(config_json), seed, id, name,
                                              one_of_two("carries", carries, "ip", "ethernet"));
}

link_impl::link_impl(const model::DirectionConfig& config, std::uint64_t seed, std::uint32_t id,
                     model::DirectionName direction, bool carries_ethernet)
    : gr::block(me, gr::io_signature::make(0, 0, 0), gr::io_signature::make(0, 0, 0)),
      carries_ethernet_(carries_ethernet),
      reads_headers_(config.mark.has_value() ||
                     !std::holds_alternative<model::DropTail>(config.queue)),
      model_(config, seed, id, direction),
      thread_([this](std::int64_t now_ns) { return advance(now_ns); }) {
  message_port_register_in(pmt::mp("frames"));
  set_msg_handler(pmt::mp("frames"), [this](const pmt::pmt_t& message) { offer(message); });
  message_port_register_out(pmt::mp("frames"));
  message_port_register_out(pmt::mp("losses"));
}

bool link_impl::start() {
  if (epoch_ns_ == 0) epoch_ns_ = ::nagi::io::read_clock(CLOCK_MONOTONIC);
  thread_.start();
  return gr::block::start();
}

bool link_impl::stop() {
  thread_.stop();
  return gr::block::stop();
}

::nagi::Instant link_impl::instant(std::int64_t monotonic_ns) const {
  return ::nagi::Instant{::nagi::Duration{monotonic_ns - epoch_ns_}};
}

std::int64_t link_impl::monotonic_ns(::nagi::Instant instant) const {
  return instant.time_since_epoch().count() + epoch_ns_;
}

model::DirectionCounters link_impl::counters() const {
  const std::lock_guard lock(mutex_);
  return model_.counters();
}

std::uint64_t link_impl::held() const {
  const std::lock_guard lock(mutex_);
  return model_.held();
}

void link_impl::offer(const pmt::pmt_t& message) {
  const Pdu pdu = open_pdu(message, me);
  const auto bytes = bytes_of(pdu, me);
  const std::size_t framing = carries_ethernet_ ? ETH_HLEN : 0;
  model::Packet packet{{bytes.size() > framing ? bytes.size() - framing : 0}};
  if (reads_headers_) {
    auto frame = as_frame(bytes, carries_ethernet_);
    const ::nagi::io::IpHeader header({frame.data(), frame.size()});
    packet.ecn = model::Ecn{header.ecn()};
    packet.flow = header.flow();
  }
  Departures departures;
  {
    const std::lock_guard lock(mutex_);
    const std::int64_t now_ns = ::nagi::io::read_clock(CLOCK_MONOTONIC);
    const pmt::pmt_t arrived = pmt::dict_ref(pdu.meta, pmt::mp("arrived_ns"), pmt::PMT_NIL);
    const std::int64_t at = pmt::is_integer(arrived) ? pmt::to_long(arrived) : now_ns;
    packet.tag = next_tag_++;
    held_.emplace(packet.tag, pdu);
    model_.offer(packet,
                 std::clamp(instant(at), model_.now(), std::max(model_.now(), instant(now_ns))),
                 departures);
    publish(departures);
  }
  thread_.wake();
}

std::optional<std::int64_t> link_impl::advance(std::int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  Departures departures;
  model_.advance(std::max(instant(now_ns), model_.now()), departures);
  publish(departures);
  const auto next = model_.next_event();
  if (!next || *next == ::nagi::Instant::max()) return std::nullopt;
  return monotonic_ns(*next);
}

void link_impl::publish(const Departures& departures) {
  for (const model::Departure& departure : departures) {
    Pdu pdu = held_.at(departure.packet.tag);
    if (!departure.is_copy) held_.erase(departure.packet.tag);
    if (departure.packet.marked || departure.packet.corrupted) {
      change(pdu, departure.packet, carries_ethernet_);
    }
    if (departure.fate == model::Fate::delivered) {
      pdu.meta = pmt::dict_add(pdu.meta, due_ns(), pmt::from_long(monotonic_ns(departure.at)));
      message_port_pub(pmt::mp("frames"), pmt::cons(pdu.meta, pdu.data));
    } else {
      pdu.meta = pmt::dict_add(pdu.meta, pmt::mp("fate"), pmt::mp(name_of(departure.fate)));
      message_port_pub(pmt::mp("losses"), pmt::cons(pdu.meta, pdu.data));
    }
  }
}

}  // namespace nagi
}  // namespace gr
