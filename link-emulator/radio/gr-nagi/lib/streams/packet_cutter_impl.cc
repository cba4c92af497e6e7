/* SPDX-License-Identifier: Apache-2.0 */
#include "packet_cutter_impl.h"

#include <gnuradio/io_signature.h>

#include <algorithm>
#include <optional>
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

const pmt::pmt_t& outcomes_port() {
  static const pmt::pmt_t port = pmt::mp("outcomes");
  return port;
}

/// Return the integer in a tag, or std::nullopt if the tag has another value.
std::optional<std::int64_t> whole(const pmt::pmt_t& value) {
  if (pmt::is_integer(value)) return pmt::to_long(value);
  if (pmt::is_uint64(value)) return static_cast<std::int64_t>(pmt::to_uint64(value));
  return std::nullopt;
}

[[noreturn]] void refuse(std::uint64_t position, const std::string& what) {
  throw std::runtime_error("stream_to_packets: byte " + std::to_string(position) + what);
}

}  // namespace

PacketOutlet::PacketOutlet(std::size_t window)
    : gr::block("packet_outlet", gr::io_signature::make(0, 0, 0), gr::io_signature::make(0, 0, 0)),
      window_(window) {
  message_port_register_in(packets_port());
  message_port_register_in(outcomes_port());
  message_port_register_out(packets_port());
  set_msg_handler(packets_port(),
                  [this](const pmt::pmt_t& message) { message_port_pub(packets_port(), message); });
  set_msg_handler(outcomes_port(), [this](const pmt::pmt_t&) {
    const gr::thread::scoped_lock lock(mutex_);
    if (in_flight_ > 0) --in_flight_;
    changed_.notify_one();
  });
}

void PacketOutlet::send(const pmt::pmt_t& packet) {
  {
    gr::thread::scoped_lock lock(mutex_);
    // GNU Radio interrupts this wait when the flowgraph ends.
    while (window_ > 0 && in_flight_ >= window_) changed_.wait(lock);
    ++in_flight_;
  }
  _post(packets_port(), packet);
}

packet_cutter::sptr packet_cutter::make(const std::string& length_tag, std::size_t max_packet,
                                        std::size_t window) {
  if (max_packet < 1 || max_packet > 65'535) {
    throw std::invalid_argument("stream_to_packets: max_packet is " + std::to_string(max_packet) +
                                ", not 1 to 65535");
  }
  return gnuradio::make_block_sptr<packet_cutter_impl>(length_tag, max_packet, window);
}

packet_cutter_impl::packet_cutter_impl(const std::string& length_tag, std::size_t max_packet,
                                       std::size_t window)
    : gr::sync_block("packet_cutter", gr::io_signature::make(1, 1, 1),
                     gr::io_signature::make(0, 0, 0)),
      outlet_(gnuradio::make_block_sptr<PacketOutlet>(window)),
      length_tag_(length_tag.empty() ? pmt::PMT_NIL : pmt::mp(length_tag)),
      max_packet_(max_packet) {}

bool packet_cutter_impl::stop() {
  if (length_ > 0 || !prefix_.empty()) {
    const std::size_t received = length_ > 0 ? packet_.size() : prefix_.size();
    const std::string expected = length_ > 0 ? std::to_string(length_) : "its length";
    d_logger->warn("the stream ended within a packet, which is dropped: " +
                   std::to_string(received) + " bytes of " + expected);
  }
  return gr::sync_block::stop();
}

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
    const std::uint64_t position = nitems_read(0) + at;
    if (length_ > 0) {
      const std::size_t taken = take_body(bytes.subspan(at));
      at += taken;
      // A packet's own tag is at its first byte. A tag within a packet contradicts the length.
      if (tag != tags.end() && tag->offset < position + taken) {
        refuse(tag->offset, " begins a packet within another one");
      }
      continue;
    }
    if (tag == tags.end() || tag->offset != position) {
      refuse(position,
             " belongs to no packet: it has no tag " + pmt::symbol_to_string(length_tag_));
    }
    const auto length = whole(tag->value);
    if (!length) {
      refuse(position, ": its tag " + pmt::symbol_to_string(length_tag_) + " is " +
                           pmt::write_string(tag->value) + ", not a number of bytes");
    }
    begin_packet(*length, position);
    ++tag;
  }
}

/// Append bytes to the current packet, and send the packet when it is complete. Return the number
/// of bytes that were appended.
std::size_t packet_cutter_impl::take_body(std::span<const std::uint8_t> bytes) {
  const std::size_t count = std::min(bytes.size(), length_ - packet_.size());
  packet_.insert(packet_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
  if (packet_.size() == length_) {
    const pmt::pmt_t meta =
        pmt::dict_add(pmt::make_dict(), key::number(), pmt::from_uint64(packets_));
    outlet_->send(make_pdu(meta, packet_));
    ++packets_;
    packet_.clear();
    length_ = 0;
  }
  return count;
}

void packet_cutter_impl::begin_packet(std::int64_t length, std::uint64_t position) {
  if (length < 1 || length > static_cast<std::int64_t>(max_packet_)) {
    refuse(position, ": a packet of " + std::to_string(length) + " bytes, not 1 to " +
                         std::to_string(max_packet_));
  }
  length_ = static_cast<std::size_t>(length);
}

}  // namespace nagi
}  // namespace gr
