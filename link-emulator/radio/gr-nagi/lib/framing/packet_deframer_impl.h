/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/nagi/framing.h>
#include <gnuradio/nagi/packet_deframer.h>

namespace gr {
namespace nagi {

class packet_deframer_impl : public packet_deframer {
 public:
  packet_deframer_impl(const std::vector<code_rate>& rates, bool whiten, std::size_t max_payload);

 private:
  void deframe(const pmt::pmt_t& message);

  std::vector<std::unique_ptr<framing>> framings_;  // one per mode
};

}  // namespace nagi
}  // namespace gr
