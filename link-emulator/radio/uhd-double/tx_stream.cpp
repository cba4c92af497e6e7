/* SPDX-License-Identifier: Apache-2.0 */
#include "tx_stream.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <uhd/exception.hpp>

namespace nagi::uhd_double {

namespace {

constexpr double soonest_s = 100e-6;  // a burst without a time begins this much later
enum Fault : std::uint32_t { late, underflow, sequence };

std::chrono::steady_clock::time_point steady(std::int64_t ns) {
  return std::chrono::steady_clock::time_point{std::chrono::nanoseconds{ns}};
}

std::int64_t after(double seconds) {
  return monotonic_ns() + static_cast<std::int64_t>(seconds * 1e9);
}

}  // namespace

TxStream::TxStream(std::shared_ptr<Board> board, std::vector<Channel*> channels,
                   const uhd::stream_args_t& arguments)
    : board_(std::move(board)),
      channels_(std::move(channels)),
      is_float_(arguments.cpu_format == "fc32"),
      imbalance_(board_->settings),
      converter_(board_->settings.bits) {}

size_t TxStream::send(const buffs_type& buffers, size_t count, const uhd::tx_metadata_t& metadata,
                      double timeout) {
  if (count > 0 && (metadata.start_of_burst || !in_burst_)) begin_burst(metadata);
  std::size_t done = 0;
  while (in_burst_ && done < count) {
    const std::size_t part = std::min(count - done, get_max_num_samps());
    if (!dropped_ && !wait_for_room(part, timeout)) return done;
    if (!dropped_ && next() < board_->clock.now()) {
      report(Event::EVENT_CODE_UNDERFLOW, next());
      dropped_ = true;
    }
    if (!dropped_) transmit(buffers, done, part);
    done += part;
  }
  if (metadata.end_of_burst && in_burst_) {
    if (!dropped_) report(Event::EVENT_CODE_BURST_ACK, next());
    in_burst_ = false;
  }
  return count;
}

/// Begin a burst: check that it is on time and draw its random faults.
void TxStream::begin_burst(const uhd::tx_metadata_t& metadata) {
  const uhd::time_spec_t now = board_->clock.now();
  const double tick_hz = board_->tick_hz;
  const uhd::time_spec_t requested = metadata.has_time_spec ? metadata.time_spec : now + soonest_s;
  begin_ = uhd::time_spec_t::from_ticks(requested.to_ticks(tick_hz), tick_hz);
  sent_ = 0;
  in_burst_ = true;
  rate_hz_ = channels_.front()->rate_hz;
  const std::uint64_t number = channels_.front()->bursts++;
  const model::ChannelKey key = board_->key(*channels_.front(), true);
  const Settings& settings = board_->settings;
  const auto occurs = [&](Fault fault, double probability) {
    return board_->has_faults() && fault_occurs(key, fault, number, probability);
  };
  const bool is_late = begin_ < now || occurs(Fault::late, settings.late);
  const bool loses_packet = occurs(Fault::sequence, settings.tx_sequence);
  will_underflow_ = occurs(Fault::underflow, settings.underflow);
  dropped_ = is_late || loses_packet;
  if (is_late) {
    report(Event::EVENT_CODE_TIME_ERROR, begin_);
  } else if (loses_packet) {
    report(Event::EVENT_CODE_SEQ_ERROR, begin_);
  }
  if (dropped_) return;
  emissions_.clear();
  for (const Channel* channel : channels_) {
    Emission emission;
    emission.clock = &board_->clock;
    emission.begin = begin_;
    emission.at = board_->clock.instant(begin_);
    const double factor = board_->clock.factor();
    emission.rate_hz = rate_hz_;
    emission.true_rate_hz = rate_hz_ * factor;
    emission.carrier_hz = (channel->lo_hz + channel->dsp_hz) * factor;
    emission.full_scale_dbm = max_output_dbm - (max_tx_gain_db - channel->gain_db);
    emissions_.push_back(channel->cable->begin(std::move(emission)));
  }
}

void TxStream::transmit(const buffs_type& buffers, std::size_t offset, std::size_t count) {
  if (will_underflow_) count = (count + 1) / 2;
  for (std::size_t i = 0; i < channels_.size(); ++i) {
    channels_[i]->cable->append(emissions_[i], output(buffers[i], offset, count));
  }
  sent_ += count;
  if (will_underflow_) {
    report(Event::EVENT_CODE_UNDERFLOW, next());
    dropped_ = true;
  }
}

std::vector<Sample> TxStream::output(const void* buffer, std::size_t offset,
                                     std::size_t count) const {
  std::vector<Sample> samples(count);
  if (is_float_) {
    const auto* from = static_cast<const Sample*>(buffer) + offset;
    std::copy(from, from + count, samples.begin());
  } else {
    const auto* from = static_cast<const std::complex<std::int16_t>*>(buffer) + offset;
    std::transform(from, from + count, samples.begin(), [](std::complex<std::int16_t> sample) {
      return Sample(static_cast<float>(sample.real()), static_cast<float>(sample.imag())) /
             32768.0F;
    });
  }
  converter_.apply(samples);
  imbalance_.apply(samples);
  const auto dc = static_cast<float>(board_->settings.tx_dc);
  if (dc != 0) {
    for (Sample& sample : samples) sample += dc;
  }
  return samples;
}

/// Wait until the output's buffer has room for `count` samples. Return false if there is no room
/// within `timeout` seconds.
bool TxStream::wait_for_room(std::size_t count, double timeout) const {
  const uhd::time_spec_t end = next() + static_cast<double>(count) / rate_hz_;
  const double ahead_s = (end - board_->clock.now()).get_real_secs();
  const double buffer_s = board_->settings.buffer_s;
  if (ahead_s <= buffer_s) return true;
  const double needed_s = ahead_s - buffer_s;
  std::this_thread::sleep_until(steady(after(std::min(needed_s, timeout))));
  return needed_s <= timeout;
}

uhd::time_spec_t TxStream::next() const { return begin_ + static_cast<double>(sent_) / rate_hz_; }

void TxStream::report(Event event, const uhd::time_spec_t& at) {
  uhd::async_metadata_t message;
  message.channel = 0;
  message.has_time_spec = true;
  message.time_spec = at;
  message.event_code = event;
  {
    const std::lock_guard lock(mutex_);
    messages_.push_back(message);
  }
  changed_.notify_one();
}

bool TxStream::recv_async_msg(uhd::async_metadata_t& message, double timeout) {
  const std::int64_t deadline = after(timeout);
  std::unique_lock lock(mutex_);
  while (true) {
    std::int64_t wake = deadline;
    if (!messages_.empty()) {
      const Instant due = board_->clock.instant(messages_.front().time_spec);
      if (due.ns < monotonic_ns()) {
        message = messages_.front();
        messages_.pop_front();
        return true;
      }
      wake = std::min(wake, due.ns + 1);
    }
    if (monotonic_ns() >= deadline) return false;
    changed_.wait_until(lock, steady(wake));
  }
}

}  // namespace nagi::uhd_double
