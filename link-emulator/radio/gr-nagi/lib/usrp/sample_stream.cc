/* SPDX-License-Identifier: Apache-2.0 */
#include "sample_stream.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <future>

#include "io/clock.hpp"

namespace gr::nagi {

namespace {

constexpr double buffer_s = 0.5;     // length of the buffer
constexpr double packet_s = 0.5e-3;  // a window may wait this long for the rest of a packet
constexpr double begin_in_s = 0.05;  // time until a stream or a measurement begins
constexpr double recv_timeout_s = 0.2;
constexpr double give_up_s = 2;   // time after its end at which a measurement is given up
constexpr int max_timeouts = 10;  // consecutive timeouts
constexpr int max_errors = 100;   // consecutive errors of other kinds

}  // namespace

SampleStream::SampleStream(std::shared_ptr<Usrp> usrp, std::size_t channel)
    : usrp_(std::move(usrp)), rate_hz_(usrp_->rate_hz()) {
  const auto packet = static_cast<std::size_t>(std::clamp(rate_hz_ * packet_s, 64.0, 2000.0));
  stream_ = usrp_->input_stream(channel, packet);
  ring_.resize(std::bit_ceil(static_cast<std::size_t>(rate_hz_ * buffer_s)));
  const auto [monotonic_ns, time] = usrp_->now();
  monotonic_ns_ = monotonic_ns;
  time_ = time;
  // The stream begins on the grid of samples since the device's time 0, so that samples have
  // integer numbers.
  const auto begin =
      static_cast<std::int64_t>(std::ceil((time.get_real_secs() + begin_in_s) * rate_hz_));
  uhd::stream_cmd_t command(uhd::stream_cmd_t::STREAM_MODE_START_CONTINUOUS);
  command.stream_now = false;
  command.time_spec = uhd::time_spec_t::from_ticks(begin, rate_hz_);
  first_ = next_ = begin;
  stream_->issue_stream_cmd(command);
  thread_ = std::thread([this] { receive(); });
}

SampleStream::~SampleStream() {
  stopping_ = true;
  thread_.join();
}

double SampleStream::sample_at(std::int64_t monotonic_ns) const {
  const double rest_s =
      time_.get_frac_secs() + static_cast<double>(monotonic_ns - monotonic_ns_) * 1e-9;
  return static_cast<double>(time_.get_full_secs()) * rate_hz_ + rest_s * rate_hz_;
}

void SampleStream::cut(std::int64_t begin, std::size_t length, Taker taker) {
  const std::lock_guard lock(mutex_);
  windows_.emplace(begin + static_cast<std::int64_t>(length), Window{length, std::move(taker)});
}

double SampleStream::mean_power(double seconds) {
  const auto power = std::make_shared<std::promise<double>>();
  const auto begin = static_cast<std::int64_t>(sample_at(::nagi::io::read_clock(CLOCK_MONOTONIC)) +
                                               begin_in_s * rate_hz_);
  const auto length = std::min(static_cast<std::size_t>(seconds * rate_hz_), ring_.size());
  cut(begin, length, [power](const auto& samples) {
    double sum = 0;
    if (samples) {
      for (const gr_complex& sample : *samples) sum += static_cast<double>(std::norm(sample));
      sum /= static_cast<double>(samples->size());
    }
    power->set_value(sum);
  });
  auto result = power->get_future();
  const auto limit = std::chrono::duration<double>(seconds + give_up_s);
  return result.wait_for(limit) == std::future_status::ready ? result.get() : 0;
}

ReceiveCounts SampleStream::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

std::string SampleStream::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

void SampleStream::receive() {
  using Metadata = uhd::rx_metadata_t;
  std::vector<gr_complex> packet(stream_->get_max_num_samps());
  int timeouts = 0;
  int errors = 0;
  while (!stopping_) {
    Metadata metadata;
    const std::size_t received =
        stream_->recv(packet.data(), packet.size(), metadata, recv_timeout_s, true);
    if (received > 0) {
      timeouts = errors = 0;
      const auto begin = metadata.has_time_spec ? metadata.time_spec.to_ticks(rate_hz_) : next_;
      append(begin, {packet.data(), received});
      serve_windows();
      continue;
    }
    const bool is_timeout = metadata.error_code == Metadata::ERROR_CODE_TIMEOUT;
    if (!is_timeout) count_error(metadata);
    timeouts += is_timeout ? 1 : 0;
    errors += is_timeout ? 0 : 1;
    if (timeouts < max_timeouts && errors < max_errors) continue;
    const std::lock_guard lock(mutex_);
    error_ = "the device has stopped sending samples: " + metadata.strerror();
    break;
  }
  const uhd::stream_cmd_t stop(uhd::stream_cmd_t::STREAM_MODE_STOP_CONTINUOUS);
  stream_->issue_stream_cmd(stop);
}

void SampleStream::count_error(const uhd::rx_metadata_t& metadata) {
  const std::lock_guard lock(mutex_);
  if (metadata.out_of_sequence) {
    ++counts_.sequence_errors;
  } else {
    ++counts_.overflows;
  }
}

void SampleStream::append(std::int64_t begin, std::span<const gr_complex> samples) {
  if (begin < next_) return;  // these samples were received before
  if (begin > next_) {
    missing_.emplace_back(next_, begin);
    const std::lock_guard lock(mutex_);
    counts_.lost_samples += static_cast<std::uint64_t>(begin - next_);
  }
  const std::size_t mask = ring_.size() - 1;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    ring_[(static_cast<std::size_t>(begin) + i) & mask] = samples[i];
  }
  next_ = begin + std::ssize(samples);
  first_ = std::max(first_, next_ - std::ssize(ring_));
  while (!missing_.empty() && missing_.front().second <= first_) missing_.pop_front();
}

bool SampleStream::has_samples(std::int64_t begin, std::size_t length) const {
  const std::int64_t end = begin + static_cast<std::int64_t>(length);
  if (begin < first_ || end > next_) return false;
  return std::none_of(missing_.begin(), missing_.end(), [begin, end](const auto& gap) {
    return gap.first < end && gap.second > begin;
  });
}

void SampleStream::serve_windows() {
  while (true) {
    std::unique_lock lock(mutex_);
    if (windows_.empty() || windows_.begin()->first > next_) return;
    const auto node = windows_.extract(windows_.begin());
    lock.unlock();
    const Window& window = node.mapped();
    const std::int64_t begin = node.key() - static_cast<std::int64_t>(window.length);
    if (!has_samples(begin, window.length)) {
      window.taker(std::nullopt);
      continue;
    }
    cut_.resize(window.length);
    const std::size_t mask = ring_.size() - 1;
    for (std::size_t i = 0; i < window.length; ++i) {
      cut_[i] = ring_[(static_cast<std::size_t>(begin) + i) & mask];
    }
    window.taker(std::span<const gr_complex>(cut_));
  }
}

}  // namespace gr::nagi
