/* SPDX-License-Identifier: Apache-2.0 */
//
// The endless stream of an input of a device, and windows cut out of it. Samples have the numbers
// of their device's time; what an overflow lost is missing, and so is every window that wants it.
#pragma once

#include <gnuradio/gr_complex.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "usrp.h"

namespace gr::nagi {

struct ReceiveCounts {
  std::uint64_t overflows = 0;        // the device had more samples than this machine took
  std::uint64_t sequence_errors = 0;  // a packet from it was lost
  std::uint64_t lost_samples = 0;
};

class SampleStream {
 public:
  /// Called with the samples of a window in the stream's thread; without them if some are missing.
  using Taker = std::function<void(std::optional<std::span<const gr_complex>>)>;

  /// Begins to stream. Throws UsrpError if it does not.
  SampleStream(std::shared_ptr<Usrp> usrp, std::size_t channel);
  ~SampleStream();
  SampleStream(const SampleStream&) = delete;
  SampleStream& operator=(const SampleStream&) = delete;

  /// `taker` gets `length` samples from `begin` on when they are there. Windows that are over
  /// already, or longer than what is kept, miss theirs.
  void cut(std::int64_t begin, std::size_t length, Taker taker);
  /// Mean power of the samples of the next `seconds`, of full scale; 0 if some are missing.
  double mean_power(double seconds);
  [[nodiscard]] ReceiveCounts counts() const;
  [[nodiscard]] double rate_hz() const { return rate_hz_; }
  /// Number of the sample at an instant of CLOCK_MONOTONIC, as the clocks were at the start.
  [[nodiscard]] double sample_at(std::int64_t monotonic_ns) const;
  /// What ended it, if something did.
  [[nodiscard]] std::string error() const;

 private:
  struct Window {
    std::size_t length;
    Taker taker;
  };

  void receive();
  void append(std::int64_t begin, std::span<const gr_complex> samples);
  void note(const uhd::rx_metadata_t& metadata);
  void serve();
  [[nodiscard]] bool has(std::int64_t begin, std::size_t length) const;

  std::shared_ptr<Usrp> usrp_;
  uhd::rx_streamer::sptr stream_;
  double rate_hz_;
  std::int64_t monotonic_ns_ = 0;
  uhd::time_spec_t time_{0.0};

  // Of the stream's thread.
  std::vector<gr_complex> ring_;                               // sample n at n modulo its size
  std::int64_t first_ = 0;                                     // the oldest that is kept
  std::int64_t next_ = 0;                                      // the one that comes next
  std::deque<std::pair<std::int64_t, std::int64_t>> missing_;  // [from, to)
  std::vector<gr_complex> cut_;

  mutable std::mutex mutex_;
  std::multimap<std::int64_t, Window> windows_;  // by their end
  ReceiveCounts counts_;
  std::string error_;

  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace gr::nagi
