/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/nagi/channel.h>

namespace gr {
namespace nagi {

class channel_impl : public channel {
 public:
  explicit channel_impl(const channel_config& config);

 private:
  void pass(const pmt::pmt_t& message);

  channel_model model_;
  double sample_rate_;
  std::int64_t next_begin_ns_ = 0;
};

}  // namespace nagi
}  // namespace gr
