/* SPDX-License-Identifier: Apache-2.0 */
//
// The continuous stream of an input of a device, and windows cut out of it. Samples are numbered by
// the device's time. A window that contains samples lost in an overflow is delivered without
// samples.
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
  std::uint64_t overflows = 0;        // this machine took samples too slowly from the device
  std::uint64_t sequence_errors = 0;  // a packet from the device was lost
  std::uint64_t lost_samples = 0;
};

class SampleStream {
 public:
  /// A callback that the stream's thread calls with the samples of a window, or with nullopt if
  /// samples are missing.
  using Taker = std::function<void(std::optional<std::span<const gr_complex>>)>;

  /// Start the stream of a channel.
  SampleStream(std::shared_ptr<Usrp> usrp, std::size_t channel);
  ~SampleStream();
  SampleStream(const SampleStream&) = delete;
  SampleStream& operator=(const SampleStream&) = delete;

  /// Call `taker` with `length` samples from sample `begin` on when they have arrived. If samples
  /// are no longer buffered, or the window is longer than the buffer, `taker` gets nullopt.
  void cut(std::int64_t begin, std::size_t length, Taker taker);
  /// Return the mean power of the next samples over `seconds`, relative to full scale, or 0 if
  /// samples are missing.
  double mean_power(double seconds);
  [[nodiscard]] ReceiveCounts counts() const;
  [[nodiscard]] double rate_hz() const { return rate_hz_; }
  /// Return the number of the sample at an instant of CLOCK_MONOTONIC, with a fraction. The
  /// function uses the relation of both clocks at the start of the stream.
  [[nodiscard]] double sample_at(std::int64_t monotonic_ns) const;
  /// Return the error that ended the stream, or an empty string.
  [[nodiscard]] std::string error() const;

 private:
  struct Window {
    std::size_t length;
    Taker taker;
  };

  void receive();
  void append(std::int64_t begin, std::span<const gr_complex> samples);
  void count_error(const uhd::rx_metadata_t& metadata);
  void serve_windows();
  [[nodiscard]] bool has_samples(std::int64_t begin, std::size_t length) const;

  std::shared_ptr<Usrp> usrp_;
  uhd::rx_streamer::sptr stream_;
  double rate_hz_;
  std::int64_t monotonic_ns_ = 0;
  uhd::time_spec_t time_{0.0};

  // Only the stream's thread uses the members from here to `cut_`.
  std::vector<gr_complex> ring_;                               // sample n is at n modulo the size
  std::int64_t first_ = 0;                                     // the oldest buffered sample
  std::int64_t next_ = 0;                                      // the next sample to receive
  std::deque<std::pair<std::int64_t, std::int64_t>> missing_;  // lost samples as [from, to)
  std::vector<gr_complex> cut_;

  mutable std::mutex mutex_;
  std::multimap<std::int64_t, Window> windows_;  // by the end of the window
  ReceiveCounts counts_;
  std::string error_;

  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace gr::nagi
