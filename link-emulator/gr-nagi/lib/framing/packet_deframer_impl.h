/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/nagi/framing.h>
#include <gnuradio/nagi/packet_deframer.h>

namespace gr {
namespace nagi {

class packet_deframer_impl : public packet_deframer {
 public:
  packet_deframer_impl(fec_type fec, bool whiten, std::size_t max_payload);

 private:
  void deframe(const pmt::pmt_t& message);

  framing framing_;
};

}  // namespace nagi
}  // namespace gr
