/* SPDX-License-Identifier: Apache-2.0 */
//
// Bursts to an output of a device, each at its instant, and what the device says went wrong with
// them. Instants are numbers of samples since the device's time 0.
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
  std::uint64_t late = 0;             // the device had them too late, and sent nothing
  std::uint64_t underflows = 0;       // it ran out of samples
  std::uint64_t sequence_errors = 0;  // a packet to it was lost
  std::uint64_t clipped_samples = 0;  // above full scale
};

class BurstSender {
 public:
  /// `backoff_db`: mean power of a burst below full scale.
  BurstSender(std::shared_ptr<Usrp> usrp, std::size_t channel, double backoff_db);
  ~BurstSender();
  BurstSender(const BurstSender&) = delete;
  BurstSender& operator=(const BurstSender&) = delete;

  /// Sends a burst of mean power 1. One that begins before the one before has ended fails. Numbers
  /// are the caller's, each its own.
  void send(std::uint64_t number, std::int64_t begin, std::span<const gr_complex> samples);
  /// Whether the device said that it did not send all of that burst; forgets it. A device that
  /// acknowledges bursts is given `patience` to say so, or that it sent it.
  bool take_failure(std::uint64_t number, std::chrono::nanoseconds patience = {});
  [[nodiscard]] SendCounts counts() const;
  /// Of the bursts that are sent from now on.
  void set_backoff(double backoff_db);

  /// Number of the sample at an instant of CLOCK_MONOTONIC, with a fraction.
  [[nodiscard]] double sample_at(std::int64_t monotonic_ns) const;

  /// How long before its instant a burst must be handed over at least, in ns: tried with bursts of
  /// silence. Throws UsrpError if even 50 ms are too short.
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

  mutable std::mutex mutex_;  // of what follows
  std::deque<Sent> sent_;     // of which nothing is known yet
  std::int64_t busy_until_ = 0;
  std::set<std::uint64_t> failed_;
  bool acknowledges_ = false;  // has done so before
  std::condition_variable told_;
  SendCounts counts_;
  std::int64_t monotonic_ns_ = 0;  // when the device's time was:
  uhd::time_spec_t time_{0.0};

  std::atomic<bool> stopping_ = false;
  std::thread listener_;
};

}  // namespace gr::nagi
