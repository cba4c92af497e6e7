/* SPDX-License-Identifier: Apache-2.0 */
#include "channel_impl.h"

#include <gnuradio/io_signature.h>

#include <cmath>

#include "pdu.h"

namespace gr {
namespace nagi {

namespace {
constexpr const char* me = "channel";
}

channel::sptr channel::make(const channel_config& config) {
  return gnuradio::make_block_sptr<channel_impl>(config);
}

channel_impl::channel_impl(const channel_config& config)
    : gr::block(me, gr::io_signature::make(0, 0, 0), gr::io_signature::make(0, 0, 0)),
      config_(config),
      model_(std::make_shared<const channel_model>(config)) {
  message_port_register_in(pmt::mp("bursts"));
  set_msg_handler(pmt::mp("bursts"), [this](const pmt::pmt_t& message) { pass(message); });
  message_port_register_out(pmt::mp("bursts"));
}

channel_config channel_impl::config() const {
  const std::lock_guard lock(mutex_);
  return config_;
}

void channel_impl::set_config(const channel_config& config) {
  auto model = std::make_shared<const channel_model>(config);
  const std::lock_guard lock(mutex_);
  config_ = config;
  model_ = std::move(model);
}

void channel_impl::pass(const pmt::pmt_t& message) {
  const auto [model, sample_rate] = [this] {
    const std::lock_guard lock(mutex_);
    return std::pair(model_, config_.sample_rate);
  }();
  Pdu pdu = open_pdu(message, me);
  const auto samples = samples_of(pdu, me);
  if (!pmt::dict_has_key(pdu.meta, key::begin_ns())) {
    pdu.meta = pmt::dict_add(pdu.meta, key::begin_ns(), pmt::from_long(next_begin_ns_));
  }
  const std::int64_t begin_ns = begin_of(pdu, me);
  next_begin_ns_ =
      begin_ns +
      static_cast<std::int64_t>(std::ceil(static_cast<double>(samples.size()) * 1e9 / sample_rate));
  const auto received = model->apply(number_of(pdu, me), begin_ns, samples);
  message_port_pub(pmt::mp("bursts"), make_burst(pdu.meta, received));
}

}  // namespace nagi
}  // namespace gr
