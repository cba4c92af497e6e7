/* SPDX-License-Identifier: Apache-2.0 */
#include "interference_impl.h"

#include <gnuradio/io_signature.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "model/channel_draw.hpp"
#include "model/fading.hpp"

namespace gr {
namespace nagi {

namespace {

constexpr const char* me = "interference";
constexpr std::size_t max_interferers = 8;
constexpr std::int64_t max_margin_ns = 1'000'000'000;

void require(bool holds, const std::string& what) {
  if (!holds) throw std::invalid_argument("interference: " + what);
}

interference_config checked(const interference_config& config) {
  require(config.direction < ::nagi::model::max_channels, "direction must be below 2^23");
  require(std::isfinite(config.sample_rate) && config.sample_rate > 0,
          "sample_rate must be above 0");
  require(!config.levels_db.empty() && config.levels_db.size() <= max_interferers,
          "levels_db must have 1 to 8 levels");
  for (const double level_db : config.levels_db) {
    require(std::isfinite(level_db) && std::abs(level_db) <= 200,
            "levels_db must be within 200 dB");
  }
  require(config.margin_ns >= 0 && config.margin_ns <= max_margin_ns,
          "margin_ns must be from 0 to 10^9");
  return config;
}

}  // namespace

interference::sptr interference::make(const interference_config& config) {
  return gnuradio::make_block_sptr<interference_impl>(config);
}

interference_impl::interference_impl(const interference_config& config)
    : gr::block(me, gr::io_signature::make(0, 0, 0), gr::io_signature::make(0, 0, 0)),
      config_(checked(config)),
      interfering_(config_.levels_db.size()),
      thread_([this](std::int64_t now_ns) { return advance(now_ns); }) {
  message_port_register_in(pmt::mp("bursts"));
  set_msg_handler(pmt::mp("bursts"), [this](const pmt::pmt_t& message) { hold(message); });
  for (std::size_t i = 0; i < interfering_.size(); ++i) {
    amplitudes_.push_back(
        static_cast<float>(std::sqrt(::nagi::model::power_of_db(config_.levels_db[i]))));
    const pmt::pmt_t port = pmt::mp(i == 0 ? "interferer" : "interferer" + std::to_string(i));
    message_port_register_in(port);
    set_msg_handler(port,
                    [this, i](const pmt::pmt_t& message) { receive_interfering(i, message); });
  }
  message_port_register_out(pmt::mp("bursts"));
}

bool interference_impl::start() {
  thread_.start();
  return gr::block::start();
}

bool interference_impl::stop() {
  thread_.stop();
  return gr::block::stop();
}

/// Return the burst in `message`. If the burst arrived with less delay than all earlier bursts,
/// correct the estimated epoch of event time.
interference_impl::Burst interference_impl::read(const pmt::pmt_t& message) {
  const Pdu pdu = open_pdu(message, me);
  const std::int64_t begin_ns = begin_of(pdu, me);
  const double length_s = static_cast<double>(samples_of(pdu, me).size()) / config_.sample_rate;
  const auto length_ns = static_cast<std::int64_t>(std::ceil(length_s * 1e9));
  epoch_ns_ = std::min(epoch_ns_, ::nagi::io::read_clock(CLOCK_MONOTONIC) - begin_ns);
  return {pdu, number_of(pdu, me), begin_ns, begin_ns + length_ns};
}

void interference_impl::hold(const pmt::pmt_t& message) {
  {
    const std::lock_guard lock(mutex_);
    held_.push_back(read(message));
  }
  thread_.wake();
}

void interference_impl::receive_interfering(std::size_t interferer, const pmt::pmt_t& message) {
  const std::lock_guard lock(mutex_);
  Burst burst = read(message);
  if (burst.begin_ns < left_until_ns_) {
    throw std::runtime_error("interference: burst " + std::to_string(burst.number) +
                             " of interferer " + std::to_string(interferer) +
                             " arrived more than " + std::to_string(config_.margin_ns / 1000) +
                             " us late, after a burst that it overlaps had left: this machine is "
                             "too slow or too busy");
  }
  interfering_[interferer].push_back(std::move(burst));
}

std::optional<std::int64_t> interference_impl::advance(std::int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  while (!held_.empty()) {
    const std::int64_t due_ns = held_.front().end_ns + config_.margin_ns + epoch_ns_;
    if (due_ns > now_ns) return due_ns;
    publish(held_.front());
    left_until_ns_ = std::max(left_until_ns_, held_.front().end_ns);
    held_.pop_front();
    discard_old(now_ns - epoch_ns_);
  }
  return std::nullopt;
}

void interference_impl::publish(const Burst& burst) {
  const auto clean = samples_of(burst.pdu, me);
  std::vector<gr_complex> samples(clean.begin(), clean.end());
  for (std::size_t i = 0; i < interfering_.size(); ++i) {
    for (const Burst& other : interfering_[i]) {
      if (other.begin_ns < burst.end_ns && other.end_ns > burst.begin_ns) {
        add(i, other, burst, samples);
      }
    }
  }
  message_port_pub(pmt::mp("bursts"), make_burst(burst.pdu.meta, samples));
}

void interference_impl::add(std::size_t interferer, const Burst& other, const Burst& burst,
                            std::span<gr_complex> samples) const {
  const auto random = ::nagi::model::channel_draw(
      {config_.seed, config_.direction}, ::nagi::model::ChannelPurpose::interference,
      static_cast<std::uint32_t>(interferer), other.number);
  const gr_complex gain =
      amplitudes_[interferer] *
      gr_complex(::nagi::model::phasor(::nagi::model::unit_interval(random[0])));
  const std::ptrdiff_t offset = std::lround(static_cast<double>(other.begin_ns - burst.begin_ns) *
                                            1e-9 * config_.sample_rate);
  const auto sent = samples_of(other.pdu, me);
  const std::ptrdiff_t from = std::max<std::ptrdiff_t>(0, -offset);
  const std::ptrdiff_t to = std::min(std::ssize(sent), std::ssize(samples) - offset);
  for (std::ptrdiff_t i = from; i < to; ++i) {
    const gr_complex& value = sent[static_cast<std::size_t>(i)];
    samples[static_cast<std::size_t>(offset + i)] +=
        gr_complex(value.real() * gain.real() - value.imag() * gain.imag(),
                   value.real() * gain.imag() + value.imag() * gain.real());
  }
}

/// Discard the interfering bursts that ended before any burst that is held or may still arrive.
/// Held bursts are in the order of their begin, and later bursts follow them. If no burst is held,
/// the function assumes that a burst arrives at most 1 s after its begin.
void interference_impl::discard_old(std::int64_t event_now_ns) {
  constexpr std::int64_t latest_ns = 1'000'000'000;
  const std::int64_t next_ns = held_.empty() ? event_now_ns - latest_ns : held_.front().begin_ns;
  for (auto& bursts : interfering_) {
    while (!bursts.empty() && bursts.front().end_ns < next_ns) bursts.pop_front();
  }
}

}  // namespace nagi
}  // namespace gr
