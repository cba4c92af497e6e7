/* SPDX-License-Identifier: Apache-2.0 */
//
// Sender of bursts to an output of a device, each at its instant. The sender also collects the
// errors that the device reports for its bursts. Instants are numbers of samples since the device's
// time 0.
#pragma once

#include <gnuradio/gr_complex.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include "usrp.h"

namespace gr::nagi {

struct SendCounts {
  std::uint64_t bursts = 0;
  std::uint64_t late = 0;             // bursts that reached the device too late and were not sent
  std::uint64_t underflows = 0;       // times that the device ran out of samples
  std::uint64_t sequence_errors = 0;  // times that a packet to the device was lost
  std::uint64_t clipped_samples = 0;  // samples above full scale
};

class BurstSender {
 public:
  /// Open an output channel of a device. `backoff_db` is the ratio of full scale to the mean power
  /// of a burst, in dB.
  BurstSender(std::shared_ptr<Usrp> usrp, std::size_t channel, double backoff_db);
  ~BurstSender();
  BurstSender(const BurstSender&) = delete;
  BurstSender& operator=(const BurstSender&) = delete;

  /// Send a burst of mean power 1 at the instant `begin`. The burst fails if it begins before the
  /// previous burst has ended. The caller chooses `number`, which must be unique.
  void send(std::uint64_t number, std::int64_t begin, std::span<const gr_complex> samples);
  /// Return whether burst `number` was not sent completely, and forget this failure. If the
  /// device acknowledges bursts, wait up to `timeout` for its report on this burst.
  bool take_failure(std::uint64_t number, std::chrono::nanoseconds timeout = {});
  [[nodiscard]] SendCounts counts() const;
  /// Set the backoff, in dB, of all bursts that are sent from now on.
  void set_backoff(double backoff_db);

  /// Return the number of the sample at an instant of CLOCK_MONOTONIC, with a fraction.
  [[nodiscard]] double sample_at(std::int64_t monotonic_ns) const;

  /// Measure, with bursts of silence, how long before its instant a burst must be handed over.
  /// Return this margin in ns. Throws UsrpError if even 50 ms are too short.
  std::int64_t measure_margin();

 private:
  struct Sent {
    std::uint64_t number;
    std::int64_t begin;
    std::int64_t end;
  };

  void listen();
  void take(const uhd::async_metadata_t& message);
  void read_clocks();

  std::shared_ptr<Usrp> usrp_;
  uhd::tx_streamer::sptr stream_;
  double rate_hz_;
  std::atomic<float> scale_ = 1;
  std::vector<gr_complex> scaled_;

  mutable std::mutex mutex_;  // protects the members below
  std::deque<Sent> sent_;     // bursts whose outcome is not yet known
  std::int64_t busy_until_ = 0;
  std::set<std::uint64_t> failed_;
  bool acknowledges_ = false;  // true after the device's first acknowledgement
  std::condition_variable resolved_;
  SendCounts counts_;
  std::int64_t monotonic_ns_ = 0;  // instant of CLOCK_MONOTONIC at the device's time `time_`
  uhd::time_spec_t time_{0.0};

  std::atomic<bool> stopping_ = false;
  std::thread listener_;
};

}  // namespace gr::nagi
