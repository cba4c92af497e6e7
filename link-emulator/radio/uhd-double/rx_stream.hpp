/* SPDX-License-Identifier: Apache-2.0 */
//
// A stream of samples from inputs to the host, in packets. A packet is available after the instant
// of its last sample.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <uhd/stream.hpp>
#include <vector>

#include "channel.hpp"
#include "impairments.hpp"

namespace nagi::uhd_double {

class RxStream : public uhd::rx_streamer {
 public:
  RxStream(std::shared_ptr<Board> board, std::vector<Channel*> channels,
           const uhd::stream_args_t& arguments);

  size_t get_num_channels() const override { return channels_.size(); }
  size_t get_max_num_samps() const override { return packet_; }
  size_t recv(const buffs_type& buffers, size_t count, uhd::rx_metadata_t& metadata, double timeout,
              bool one_packet) override;
  void issue_stream_cmd(const uhd::stream_cmd_t& command) override;

 private:
  using Error = uhd::rx_metadata_t::error_code_t;
  struct Failure {
    Error error;
    bool out_of_sequence = false;
    uhd::time_spec_t at;
  };
  struct Task {
    uhd::time_spec_t begin;
    std::uint64_t samples = 0;  // 0 if the task is endless
    bool is_endless = false;
    bool is_late = false;
  };

  bool start_next(std::unique_lock<std::mutex>& lock, std::int64_t deadline_ns);
  std::optional<Failure> find_failure(std::size_t count);
  void render(const buffs_type& buffers, std::size_t offset, std::size_t count);
  [[nodiscard]] uhd::time_spec_t time_of(std::uint64_t sample) const;

  std::shared_ptr<Board> board_;
  std::vector<Channel*> channels_;
  std::size_t packet_;
  bool is_float_;
  IqImbalance imbalance_;
  Converter converter_;
  std::vector<PhaseNoise> phase_noise_;
  std::vector<Sample> scratch_;
  std::uint64_t drawn_ = 0;  // samples since the stream was created, which number random draws

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  std::optional<Task> task_;
  bool stopping_ = false;
  std::uint64_t taken_ = 0;  // position in the task, in samples
  double rate_hz_ = 1;
  std::optional<Failure> pending_;
};

}  // namespace nagi::uhd_double
