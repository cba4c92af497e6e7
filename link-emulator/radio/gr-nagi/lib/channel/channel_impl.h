/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/nagi/channel.h>

#include <memory>
#include <mutex>

namespace gr {
namespace nagi {

class channel_impl : public channel {
 public:
  explicit channel_impl(const channel_config& config);

  channel_config config() const override;
  void set_config(const channel_config& config) override;

 private:
  void pass(const pmt::pmt_t& message);

  mutable std::mutex mutex_;  // protects config_ and model_
  channel_config config_;
  std::shared_ptr<const channel_model> model_;
  std::int64_t next_begin_ns_ = 0;
};

}  // namespace nagi
}  // namespace gr
