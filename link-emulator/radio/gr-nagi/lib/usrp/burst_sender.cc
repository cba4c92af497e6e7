/* SPDX-License-Identifier: Apache-2.0 */
#include "burst_sender.h"

#include <algorithm>
#include <cmath>

#include "io/clock.hpp"

namespace gr::nagi {

namespace {

constexpr double send_timeout_s = 1.0;
constexpr double listen_timeout_s = 0.1;
constexpr std::size_t max_remembered = 4096;  // bursts on which the device may still report
constexpr std::uint64_t trial = ~std::uint64_t{0};
constexpr int trials = 5;
constexpr std::size_t trial_samples = 256;

std::int64_t now_ns() { return ::nagi::io::read_clock(CLOCK_MONOTONIC); }

}  // namespace

BurstSender::BurstSender(std::shared_ptr<Usrp> usrp, std::size_t channel, double backoff_db)
    : usrp_(std::move(usrp)), stream_(usrp_->output_stream(channel)), rate_hz_(usrp_->rate_hz()) {
  set_backoff(backoff_db);
  read_clocks();
  listener_ = std::thread([this] { listen(); });
}

BurstSender::~BurstSender() {
  stopping_ = true;
  listener_.join();
}

void BurstSender::set_backoff(double backoff_db) {
  scale_ = static_cast<float>(std::pow(10.0, -backoff_db / 20));
}

void BurstSender::send(std::uint64_t number, std::int64_t begin,
                       std::span<const gr_complex> samples) {
  scaled_.assign(samples.begin(), samples.end());
  std::uint64_t clipped = 0;
  const float scale = scale_;
  for (gr_complex& sample : scaled_) {
    sample *= scale;
    if (std::max(std::abs(sample.real()), std::abs(sample.imag())) <= 1.0F) continue;
    ++clipped;
    sample = {std::clamp(sample.real(), -1.0F, 1.0F), std::clamp(sample.imag(), -1.0F, 1.0F)};
  }
  {
    const std::lock_guard lock(mutex_);
    if (begin < busy_until_) {  // both directions share this output
      failed_.insert(number);
      return;
    }
    busy_until_ = begin + std::ssize(samples);
    sent_.push_back({number, begin, busy_until_});
    if (sent_.size() > max_remembered) sent_.pop_front();
    ++counts_.bursts;
    counts_.clipped_samples += clipped;
  }
  uhd::tx_metadata_t metadata;
  metadata.has_time_spec = true;
  metadata.time_spec = uhd::time_spec_t::from_ticks(begin, rate_hz_);
  metadata.start_of_burst = true;
  std::size_t offset = 0;
  while (offset < scaled_.size()) {
    const std::size_t part = std::min(scaled_.size() - offset, stream_->get_max_num_samps());
    metadata.end_of_burst = offset + part == scaled_.size();
    const std::size_t accepted =
        stream_->send(scaled_.data() + offset, part, metadata, send_timeout_s);
    if (accepted < part) {  // the device accepts no more samples
      const std::lock_guard lock(mutex_);
      failed_.insert(number);
      ++counts_.underflows;
      return;
    }
    offset += part;
    metadata.start_of_burst = false;
    metadata.has_time_spec = false;
  }
}

bool BurstSender::take_failure(std::uint64_t number, std::chrono::nanoseconds timeout) {
  std::unique_lock lock(mutex_);
  if (acknowledges_) {
    resolved_.wait_for(lock, timeout, [this, number] {
      return failed_.contains(number) ||
             std::ranges::find(sent_, number, &Sent::number) == sent_.end();
    });
  }
  return failed_.erase(number) > 0;
}

SendCounts BurstSender::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

double BurstSender::sample_at(std::int64_t monotonic_ns) const {
  const std::lock_guard lock(mutex_);
  const double rest_s =
      time_.get_frac_secs() + static_cast<double>(monotonic_ns - monotonic_ns_) * 1e-9;
  return static_cast<double>(time_.get_full_secs()) * rate_hz_ + rest_s * rate_hz_;
}

void BurstSender::listen() {
  std::int64_t clocks_read_ns = now_ns();
  while (!stopping_) {
    uhd::async_metadata_t message;
    if (stream_->recv_async_msg(message, listen_timeout_s)) take(message);
    if (now_ns() - clocks_read_ns < 1'000'000'000) continue;
    read_clocks();  // the device's oscillator differs from this machine's
    clocks_read_ns = now_ns();
  }
}

/// Assign a report of the device to a burst. A device reports when an error occurred, but not in
/// which burst. The error belongs to the first burst that had begun by then and whose outcome is
/// not yet known.
void BurstSender::take(const uhd::async_metadata_t& message) {
  using Event = uhd::async_metadata_t;
  const std::lock_guard lock(mutex_);
  const std::int64_t at =
      message.has_time_spec ? message.time_spec.to_ticks(rate_hz_) + 1 : busy_until_;
  switch (message.event_code) {
    case Event::EVENT_CODE_BURST_ACK:
      acknowledges_ = true;
      while (!sent_.empty() && sent_.front().end <= at) sent_.pop_front();
      resolved_.notify_all();
      return;
    case Event::EVENT_CODE_TIME_ERROR:
      ++counts_.late;
      break;
    case Event::EVENT_CODE_UNDERFLOW:
    case Event::EVENT_CODE_UNDERFLOW_IN_PACKET:
      ++counts_.underflows;
      break;
    case Event::EVENT_CODE_SEQ_ERROR:
    case Event::EVENT_CODE_SEQ_ERROR_IN_BURST:
      ++counts_.sequence_errors;
      break;
    default:
      return;
  }
  if (sent_.empty() || sent_.front().begin > at) return;
  failed_.insert(sent_.front().number);
  sent_.pop_front();
  resolved_.notify_all();
}

void BurstSender::read_clocks() {
  const auto [monotonic_ns, time] = usrp_->now();
  const std::lock_guard lock(mutex_);
  monotonic_ns_ = monotonic_ns;
  time_ = time;
}

std::int64_t BurstSender::measure_margin() {
  const std::vector<gr_complex> silence(trial_samples);
  for (const std::int64_t margin_ns :
       {200'000, 500'000, 1'000'000, 2'000'000, 5'000'000, 10'000'000, 20'000'000, 50'000'000}) {
    bool was_late = false;
    for (int i = 0; i < trials && !was_late; ++i) {
      const std::int64_t at_ns = now_ns() + margin_ns;
      const std::uint64_t late_before = counts().late;
      send(trial, static_cast<std::int64_t>(std::ceil(sample_at(at_ns))), silence);
      // The device has reported late bursts by then.
      std::this_thread::sleep_for(std::chrono::nanoseconds(margin_ns + 5'000'000));
      was_late = counts().late != late_before;
    }
    const std::lock_guard lock(mutex_);
    sent_.clear();
    failed_.clear();
    counts_ = {};
    busy_until_ = 0;
    if (!was_late) return margin_ns;
  }
  throw UsrpError(
      "device", "bursts reach the device too late, even if they are sent 50 ms ahead",
      "run `nagi doctor` to find what delays this machine, and check the cable to the device");
}

}  // namespace gr::nagi
