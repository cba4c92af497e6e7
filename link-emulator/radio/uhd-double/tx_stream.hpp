/* SPDX-License-Identifier: Apache-2.0 */
//
// A stream of samples from the host to outputs. Bursts begin at given times, and messages report
// their outcomes.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <uhd/stream.hpp>
#include <vector>

#include "channel.hpp"
#include "impairments.hpp"

namespace nagi::uhd_double {

class TxStream : public uhd::tx_streamer {
 public:
  TxStream(std::shared_ptr<Board> board, std::vector<Channel*> channels,
           const uhd::stream_args_t& arguments);

  size_t get_num_channels() const override { return channels_.size(); }
  size_t get_max_num_samps() const override { return 2000; }
  size_t send(const buffs_type& buffers, size_t count, const uhd::tx_metadata_t& metadata,
              double timeout) override;
  bool recv_async_msg(uhd::async_metadata_t& message, double timeout) override;

 private:
  using Event = uhd::async_metadata_t::event_code_t;

  void begin_burst(const uhd::tx_metadata_t& metadata);
  void transmit(const buffs_type& buffers, std::size_t offset, std::size_t count);
  std::vector<Sample> output(const void* buffer, std::size_t offset, std::size_t count) const;
  bool wait_for_room(std::size_t count, double timeout) const;
  [[nodiscard]] uhd::time_spec_t next() const;
  void report(Event event, const uhd::time_spec_t& at);

  std::shared_ptr<Board> board_;
  std::vector<Channel*> channels_;
  bool is_float_;
  IqImbalance imbalance_;
  Converter converter_;

  bool in_burst_ = false;
  bool dropped_ = false;         // true if the rest of this burst is discarded
  bool will_underflow_ = false;  // true if this burst underflows by a random draw
  uhd::time_spec_t begin_;       // of the burst
  std::size_t sent_ = 0;         // samples of the burst that were sent
  double rate_hz_ = 1;
  std::vector<std::uint64_t> emissions_;  // one per channel

  mutable std::mutex mutex_;  // protects the messages
  std::condition_variable changed_;
  std::deque<uhd::async_metadata_t> messages_;  // each is available from its time on
};

}  // namespace nagi::uhd_double
