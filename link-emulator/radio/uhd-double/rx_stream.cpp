/* SPDX-License-Identifier: Apache-2.0 */
#include "rx_stream.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

namespace nagi::uhd_double {

namespace {

constexpr std::uint64_t lost_packets = 4;  // lost in a random overflow
enum Fault : std::uint32_t { overflow, sequence };

std::chrono::steady_clock::time_point steady(std::int64_t ns) {
  return std::chrono::steady_clock::time_point{std::chrono::nanoseconds{ns}};
}

}  // namespace

RxStream::RxStream(std::shared_ptr<Board> board, std::vector<Channel*> channels,
                   const uhd::stream_args_t& arguments)
    : board_(std::move(board)),
      channels_(std::move(channels)),
      packet_(static_cast<std::size_t>(
          std::clamp(arguments.args.cast<double>("spp", 2000), 16.0, 65536.0))),
      is_float_(arguments.cpu_format == "fc32"),
      imbalance_(board_->settings),
      converter_(board_->settings.bits) {
  for (const Channel* channel : channels_) {
    phase_noise_.emplace_back(board_->key(*channel, false), board_->settings.phase_noise_hz);
  }
}

void RxStream::issue_stream_cmd(const uhd::stream_cmd_t& command) {
  {
    const std::lock_guard lock(mutex_);
    if (command.stream_mode == uhd::stream_cmd_t::STREAM_MODE_STOP_CONTINUOUS) {
      stopping_ = true;
    } else {
      const uhd::time_spec_t now = board_->clock.now();
      const double tick_hz = board_->tick_hz;
      const uhd::time_spec_t requested = command.stream_now ? now : command.time_spec;
      Task task;
      task.begin = uhd::time_spec_t::from_ticks(requested.to_ticks(tick_hz), tick_hz);
      task.is_endless = command.stream_mode == uhd::stream_cmd_t::STREAM_MODE_START_CONTINUOUS;
      task.samples = task.is_endless ? 0 : command.num_samps;
      task.is_late = !command.stream_now && command.time_spec < now;
      tasks_.push_back(task);
      stopping_ = false;
    }
  }
  changed_.notify_one();
}

uhd::time_spec_t RxStream::time_of(std::uint64_t sample) const {
  const auto whole = static_cast<std::uint64_t>(rate_hz_);
  if (static_cast<double>(whole) != rate_hz_) {
    return task_->begin + static_cast<double>(sample) / rate_hz_;
  }
  // Whole seconds are added separately, so that times after a day are as exact as times after a
  // millisecond.
  return task_->begin + uhd::time_spec_t(static_cast<time_t>(sample / whole),
                                         static_cast<double>(sample % whole) / rate_hz_);
}

/// Wait for a task until the deadline. Return whether there is a task.
bool RxStream::start_next(std::unique_lock<std::mutex>& lock, std::int64_t deadline_ns) {
  if (task_ && (stopping_ || (!task_->is_endless && taken_ >= task_->samples))) task_.reset();
  while (!task_) {
    if (!tasks_.empty()) {
      task_ = tasks_.front();
      tasks_.pop_front();
      taken_ = 0;
      rate_hz_ = channels_.front()->rate_hz;
      break;
    }
    if (monotonic_ns() >= deadline_ns) return false;
    changed_.wait_until(lock, steady(deadline_ns));
  }
  return true;
}

size_t RxStream::recv(const buffs_type& buffers, size_t count, uhd::rx_metadata_t& metadata,
                      double timeout, bool one_packet) {
  metadata.reset();
  const std::int64_t deadline_ns = monotonic_ns() + static_cast<std::int64_t>(timeout * 1e9);
  std::unique_lock lock(mutex_);
  std::size_t done = 0;
  while (done < count) {
    if (!pending_ && !start_next(lock, deadline_ns)) {
      if (done == 0) metadata.error_code = Error::ERROR_CODE_TIMEOUT;
      return done;
    }
    if (!pending_ && task_->is_late) {
      pending_ = Failure{Error::ERROR_CODE_LATE_COMMAND, false, task_->begin};
      task_.reset();
    }
    std::size_t part = 0;
    if (!pending_) {
      const std::uint64_t in_packet = packet_ - taken_ % packet_;
      part = std::min<std::size_t>(count - done, in_packet);
      if (!task_->is_endless) {
        part = std::min<std::size_t>(part, task_->samples - taken_);
      }
      const Instant packet_end = board_->clock.instant(time_of(taken_ + part));
      if (packet_end.ns >= monotonic_ns()) {
        if (packet_end.ns >= deadline_ns) {
          changed_.wait_until(lock, steady(deadline_ns));
          if (monotonic_ns() < deadline_ns) continue;  // a command has arrived
          if (done == 0) metadata.error_code = Error::ERROR_CODE_TIMEOUT;
          return done;
        }
        changed_.wait_until(lock, steady(packet_end.ns + 1));
        continue;
      }
      pending_ = find_failure(part);
    }
    if (pending_) {
      if (done > 0) return done;
      metadata.error_code = pending_->error;
      metadata.out_of_sequence = pending_->out_of_sequence;
      metadata.has_time_spec = true;
      metadata.time_spec = pending_->at;
      pending_.reset();
      return 0;
    }
    if (done == 0) {
      metadata.has_time_spec = true;
      metadata.time_spec = time_of(taken_);
      metadata.start_of_burst = taken_ == 0;
      metadata.more_fragments = count < packet_ - taken_ % packet_;
    }
    render(buffers, done, part);
    taken_ += part;
    done += part;
    metadata.end_of_burst = !task_->is_endless && taken_ >= task_->samples;
    if (one_packet) break;
  }
  return done;
}

/// Return the failure of the packet that begins at the current sample, or nullopt. The position
/// moves past lost samples.
std::optional<RxStream::Failure> RxStream::find_failure(std::size_t count) {
  if (taken_ % packet_ != 0) return std::nullopt;
  const Settings& settings = board_->settings;
  const std::uint64_t packet = channels_.front()->packets++;
  const model::ChannelKey key = board_->key(*channels_.front(), false);
  const uhd::time_spec_t begin = time_of(taken_);
  const double waited_s = (board_->clock.now() - begin).get_real_secs();
  if (waited_s > settings.buffer_s + static_cast<double>(packet_) / rate_hz_) {
    const auto behind = static_cast<std::uint64_t>(waited_s * rate_hz_);
    taken_ += behind / packet_ * packet_;
    return Failure{Error::ERROR_CODE_OVERFLOW, false, begin};
  }
  if (!board_->has_faults()) return std::nullopt;
  if (fault_occurs(key, Fault::overflow, packet, settings.overflow)) {
    taken_ += lost_packets * packet_;
    return Failure{Error::ERROR_CODE_OVERFLOW, false, begin};
  }
  if (fault_occurs(key, Fault::sequence, packet, settings.rx_sequence)) {
    taken_ += std::max(packet_, count);
    return Failure{Error::ERROR_CODE_OVERFLOW, true, begin};
  }
  return std::nullopt;
}

void RxStream::render(const buffs_type& buffers, std::size_t offset, std::size_t count) {
  const Settings& settings = board_->settings;
  scratch_.resize(count);
  for (std::size_t i = 0; i < channels_.size(); ++i) {
    const Channel& channel = *channels_[i];
    std::ranges::fill(scratch_, Sample());
    Reception reception;
    reception.clock = &board_->clock;
    reception.begin = time_of(taken_);
    reception.at = board_->clock.instant(reception.begin);
    const double factor = board_->clock.factor();
    reception.rate_hz = rate_hz_;
    reception.true_rate_hz = rate_hz_ * factor;
    // The DSP of an input shifts the signal in the opposite direction to the DSP of an output.
    reception.carrier_hz = (channel.lo_hz - channel.dsp_hz) * factor;
    const double full_scale_dbm = input_full_scale_dbm - channel.gain_db;
    reception.full_scale_dbm = full_scale_dbm + settings.attenuation_db;
    channel.cable->add_to(scratch_, reception);
    const double noise_dbm = thermal_dbm_hz + 10 * std::log10(rate_hz_) + settings.noise_figure_db;
    add_noise(scratch_, board_->key(channel, false), drawn_,
              std::pow(10.0, (noise_dbm - full_scale_dbm) / 10));
    phase_noise_[i].apply(scratch_, drawn_, rate_hz_);
    imbalance_.apply(scratch_);
    const auto dc = static_cast<float>(settings.rx_dc);
    if (dc != 0) {
      for (Sample& sample : scratch_) sample += dc;
    }
    converter_.apply(scratch_);
    if (is_float_) {
      std::ranges::copy(scratch_, static_cast<Sample*>(buffers[i]) + offset);
    } else {
      auto* to = static_cast<std::complex<std::int16_t>*>(buffers[i]) + offset;
      std::ranges::transform(scratch_, to, [](const Sample& each) {
        return std::complex<std::int16_t>(static_cast<std::int16_t>(each.real() * 32768.0F),
                                          static_cast<std::int16_t>(each.imag() * 32768.0F));
      });
    }
  }
  drawn_ += count;
}

}  // namespace nagi::uhd_double
