/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/block.h>
#include <gnuradio/nagi/packet_cutter.h>
#include <gnuradio/thread/thread.h>

#include <atomic>
#include <span>
#include <vector>

namespace gr {
namespace nagi {

/// The block with the message ports: packets leave, and outcomes return.
class PacketOutlet : public gr::block {
 public:
  /// `window` is the maximum number of packets in flight; 0 means no limit.
  explicit PacketOutlet(std::size_t window);

  /// Send a packet. Wait first while `window` packets are in flight.
  void send(const pmt::pmt_t& packet);

 private:
  std::size_t window_;
  gr::thread::mutex mutex_;
  gr::thread::condition_variable changed_;
  std::size_t in_flight_ = 0;
};

class packet_cutter_impl : public packet_cutter {
 public:
  packet_cutter_impl(const std::string& length_tag, std::size_t max_packet, std::size_t window);

  gr::block_sptr outlet() const override { return outlet_; }
  std::uint64_t packets() const override { return packets_; }
  bool stop() override;
  int work(int noutput_items, gr_vector_const_void_star& input_items,
           gr_vector_void_star& output_items) override;

 private:
  void take_prefixed(std::span<const std::uint8_t> bytes);
  void take_tagged(std::span<const std::uint8_t> bytes);
  std::size_t take_body(std::span<const std::uint8_t> bytes);
  void begin_packet(std::int64_t length, std::uint64_t position);

  std::shared_ptr<PacketOutlet> outlet_;
  pmt::pmt_t length_tag_;  // PMT_NIL if the lengths are in the stream
  std::size_t max_packet_;
  std::vector<std::uint8_t> prefix_;
  std::vector<std::uint8_t> packet_;
  std::size_t length_ = 0;  // of the current packet; 0 between packets
  std::atomic<std::uint64_t> packets_ = 0;
};

}  // namespace nagi
}  // namespace gr
