/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/nagi/packet_mux.h>

#include <deque>

#include "packet_symbols.h"

namespace gr {
namespace nagi {

class packet_mux_impl : public packet_mux {
 public:
  explicit packet_mux_impl(const packet_mux_config& config);

 private:
  struct Packet {
    pmt::pmt_t meta;
    pmt::pmt_t bytes;  // PMT_NIL if the packet cannot be sent
  };

  void take(const pmt::pmt_t& message);
  void finish(const pmt::pmt_t& message);
  void feed();
  void refuse();

  PacketSymbols symbols_;
  std::size_t block_;
  std::size_t longest_;
  std::size_t guard_;
  std::size_t tail_;
  std::deque<Packet> packets_;  // the first `modulating_` packets are in the modulator
  std::size_t modulating_ = 0;
};

}  // namespace nagi
}  // namespace gr
