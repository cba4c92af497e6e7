/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/nagi/framing.h>
#include <gnuradio/nagi/packet_framer.h>

namespace gr {
namespace nagi {

class packet_framer_impl : public packet_framer {
 public:
  packet_framer_impl(const std::vector<code_rate>& rates, bool whiten, std::size_t max_payload);

 private:
  void frame(const pmt::pmt_t& message);

  std::vector<std::unique_ptr<framing>> framings_;  // one per mode
  std::uint64_t next_number_ = 0;
};

}  // namespace nagi
}  // namespace gr
