/* SPDX-License-Identifier: Apache-2.0 */
//
// One direction of a link over the air, from an output of a device to an input of the same or
// another device. In a flowgraph, this block takes the place of the simulated channel: it takes
// bursts and publishes the bursts as received.
#pragma once

#include <gnuradio/block.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "burst_search.h"
#include "burst_sender.h"
#include "delay_tracking.h"
#include "half_duplex.h"
#include "pdu.h"
#include "sample_stream.h"

namespace gr::nagi {

struct UsrpChannelSettings {
  std::int64_t epoch_monotonic_ns = 0;  // start of event time
  std::int64_t lead_ns = 0;             // time from a burst's begin_ns to its transmission
  bool common_clock = true;             // true if both ends share a clock
  std::size_t guard = 0;                // samples of a burst before its preamble
  std::size_t direction = 0;            // 0 forward, 1 backward
  double max_false_alarms = 1e-6;       // per burst
};

struct ChannelCounts {
  SendCounts sent;
  ReceiveCounts received;
  std::uint64_t not_sent = 0;       // bursts that the device did not send completely
  std::uint64_t not_received = 0;   // bursts with missing samples
  std::uint64_t receiver_busy = 0;  // half duplex: bursts during which the receiver transmitted
};

/// The result of probing.
struct Synchronisation {
  std::size_t probes = 0;
  std::size_t found = 0;
  double delay_samples = 0;  // from the requested instant to the reception
  double drift_ppm = 0;      // of the transmitter's clock relative to the receiver's
  double snr_db = 0;         // of the preambles
};

/*!
 * A block with two message ports. The input \c bursts takes bursts of complex samples of mean power
 * 1, with \c number and \c begin_ns. The output \c bursts publishes one burst for each of these, in
 * order. A burst that was not sent or not received is empty and has a \c fate, which receivers keep
 * and medium_port reports.
 */
class UsrpChannel : public gr::block {
 public:
  using sptr = std::shared_ptr<UsrpChannel>;

  /// Create one direction of a link. `half_duplex` is shared with the other direction, or null if
  /// the link is full duplex.
  UsrpChannel(std::shared_ptr<BurstSender> sender, std::shared_ptr<SampleStream> stream,
              std::shared_ptr<HalfDuplex> half_duplex, const PreambleShape& preamble,
              const UsrpChannelSettings& settings);
  bool stop() override;
  /// Stop the block and release its sender and its stream.
  void close();

  /// Send the preamble `probes` times and search the continuous stream within `within_s` seconds of
  /// each expected position. Throws UsrpError if fewer than half of the probes are found.
  Synchronisation synchronise(std::size_t probes, double within_s);
  void set_lead(std::int64_t lead_ns) { settings_.lead_ns = lead_ns; }
  [[nodiscard]] ChannelCounts counts() const;
  /// Return the number of positions at which a receiver with the transmitter's clock searches for a
  /// burst.
  static std::size_t common_clock_positions(const PreambleShape& preamble);
  /// Return the error that ended the stream, or an empty string.
  [[nodiscard]] std::string error() const { return stream_->error(); }

 private:
  struct Burst {
    std::uint64_t id;
    pmt::pmt_t meta;
    std::int64_t begin;  // first sample at the transmitter
    std::size_t length;
    std::int64_t expected;  // first sample of the window at the receiver
    std::size_t margin;
  };

  void transmit(const pmt::pmt_t& message);
  void process_window(const Burst& burst, std::optional<std::span<const gr_complex>> samples);
  void publish_lost(const Burst& burst, Outcome why);
  [[nodiscard]] std::int64_t begin_of_burst(std::int64_t begin_ns);

  std::shared_ptr<BurstSender> sender_;
  std::shared_ptr<SampleStream> stream_;
  std::shared_ptr<HalfDuplex> half_duplex_;
  PreambleShape preamble_;
  UsrpChannelSettings settings_;
  std::unique_ptr<BurstSearch> search_;
  std::int64_t earliest_ = 0;  // end of the previous burst
  std::int64_t latest_ = 0;    // end of the previous burst's window

  // The stream's thread may still use this state after the block is destroyed.
  struct Shared {
    std::mutex taking;  // held while a window is processed
    mutable std::mutex mutex;
    DelayTracking tracking;
    std::map<Outcome, std::uint64_t> lost;
    bool closed = false;
    explicit Shared(bool common_clock) : tracking(common_clock) {}
  };
  std::shared_ptr<Shared> shared_;
};

}  // namespace gr::nagi
