/* SPDX-License-Identifier: Apache-2.0 */
#include "packet_cutter_impl.h"

#include <gnuradio/io_signature.h>

#include <algorithm>
#include <stdexcept>

#include "pdu.h"

namespace gr {
namespace nagi {

namespace {

constexpr std::size_t prefix_bytes = 2;

const pmt::pmt_t& packets_port() {
  static const pmt::pmt_t port = pmt::mp("packets");
  return port;
}

/// Hands messages on.
class Outlet : public gr::block {
 public:
  Outlet()
      : gr::block("packet_outlet", gr::io_signature::make(0, 0, 0),
                  gr::io_signature::make(0, 0, 0)) {
    message_port_register_in(packets_port());
    message_port_register_out(packets_port());
    set_msg_handler(packets_port(), [this](const pmt::pmt_t& message) {
      message_port_pub(packets_port(), message);
    });
  }
};

}  // namespace

packet_cutter::sptr packet_cutter::make(const std::string& length_tag, std::size_t max_packet) {
  if (max_packet < 1 || max_packet > 65'535) {
    throw std::invalid_argument("stream_to_packets: max_packet is " + std::to_string(max_packet) +
                                ", not 1 to 65535");
  }
  return gnuradio::make_block_sptr<packet_cutter_impl>(length_tag, max_packet);
}

packet_cutter_impl::packet_cutter_impl(const std::string& length_tag, std::size_t max_packet)
    : gr::sync_block("packet_cutter", gr::io_signature::make(1, 1, 1),
                     gr::io_signature::make(0, 0, 0)),
      outlet_(gnuradio::make_block_sptr<Outlet>()),
      length_tag_(length_tag.empty() ? pmt::PMT_NIL : pmt::mp(length_tag)),
      max_packet_(max_packet) {}

int packet_cutter_impl::work(int noutput_items, gr_vector_const_void_star& input_items,
                             gr_vector_void_star&) {
  const std::span bytes(static_cast<const std::uint8_t*>(input_items[0]),
                        static_cast<std::size_t>(noutput_items));
  if (pmt::is_null(length_tag_)) {
    take_prefixed(bytes);
  } else {
    take_tagged(bytes);
  }
  return noutput_items;
}

void packet_cutter_impl::take_prefixed(std::span<const std::uint8_t> bytes) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    if (length_ > 0) {
      at += take_body(bytes.subspan(at));
      continue;
    }
    prefix_.push_back(bytes[at++]);
    if (prefix_.size() == prefix_bytes) {
      begin_packet(prefix_[0] << 8 | prefix_[1], nitems_read(0) + at - prefix_bytes);
      prefix_.clear();
    }
  }
}

void packet_cutter_impl::take_tagged(std::span<const std::uint8_t> bytes) {
  std::vector<gr::tag_t> tags;
  get_tags_in_window(tags, 0, 0, bytes.size(), length_tag_);
  std::sort(tags.begin(), tags.end(), gr::tag_t::offset_compare);
  auto tag = tags.begin();
  std::size_t at = 0;
  while (at < bytes.size()) {
    const std::uint64_t place = nitems_read(0) + at;
    if (length_ > 0) {
      const std::size_t taken = take_body(bytes.subspan(at));
      at += taken;
      // A packet's own tag is at its begin; another one within it contradicts its length.
      if (tag != tags.end() && tag->offset < place + taken) {
        throw std::runtime_error("stream_to_packets: byte " + std::to_string(tag->offset) +
                                 " begins a packet within another one");
      }
      continue;
    }
    if (tag == tags.end() || tag->offset != place) {
      throw std::runtime_error("stream_to_packets: byte " + std::to_string(place) +
                               " belongs to no packet: it has no tag " +
                               pmt::symbol_to_string(length_tag_));
    }
    begin_packet(pmt::to_long(tag->value), place);
    ++tag;
  }
}

/// Bytes of the packet that has begun; returns how many.
std::size_t packet_cutter_impl::take_body(std::span<const std::uint8_t> bytes) {
  const std::size_t count = std::min(bytes.size(), length_ - packet_.size());
  packet_.insert(packet_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
  if (packet_.size() == length_) {
    const pmt::pmt_t meta =
        pmt::dict_add(pmt::make_dict(), key::number(), pmt::from_uint64(packets_++));
    outlet_->_post(packets_port(), make_pdu(meta, packet_));
    packet_.clear();
    length_ = 0;
  }
  return count;
}

void packet_cutter_impl::begin_packet(std::int64_t length, std::uint64_t place) {
  if (length < 1 || length > static_cast<std::int64_t>(max_packet_)) {
    throw std::runtime_error("stream_to_packets: byte " + std::to_string(place) + ": a packet of " +
                             std::to_string(length) + " bytes, not 1 to " +
                             std::to_string(max_packet_));
  }
  length_ = static_cast<std::size_t>(length);
}

}  // namespace nagi
}  // namespace gr
