/* SPDX-License-Identifier: Apache-2.0 */
//
// One direction of a link over the air: from an output of a device to an input of it or another. In
// a flowgraph it stands where the simulated channel stands: bursts in, bursts as received out.
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
  std::int64_t epoch_monotonic_ns = 0;  // of event time
  std::int64_t lead_ns = 0;             // a burst is on the air that much after its begin
  bool common_clock = true;             // of both ends
  std::size_t guard = 0;                // samples of a burst before its preamble
  std::size_t direction = 0;            // 0 forward, 1 backward
  double max_false_alarms = 1e-6;       // a burst
};

struct ChannelCounts {
  SendCounts sent;
  ReceiveCounts received;
  std::uint64_t not_sent = 0;       // bursts of which the device did not send all
  std::uint64_t not_received = 0;   // bursts of which samples are missing
  std::uint64_t receiver_busy = 0;  // half duplex: the receiver transmitted itself
};

/// What probing found.
struct Synchronisation {
  std::size_t probes = 0;
  std::size_t found = 0;
  double delay_samples = 0;  // from the instant asked for to that of reception
  double drift_ppm = 0;      // of the transmitter's clock against the receiver's
  double snr_db = 0;         // of the preambles
};

/*!
 * Message ports: in \c bursts (complex samples of mean power 1, with \c number and \c begin_ns),
 * out
 * \c bursts, one each, in order. One that was not sent, or not received, is empty and has an
 * \c outcome that receivers keep (medium_port reports it).
 */
class UsrpChannel : public gr::block {
 public:
  using sptr = std::shared_ptr<UsrpChannel>;

  /// `half_duplex`: shared with the other direction; else null.
  UsrpChannel(std::shared_ptr<BurstSender> sender, std::shared_ptr<SampleStream> stream,
              std::shared_ptr<HalfDuplex> half_duplex, const PreambleShape& preamble,
              const UsrpChannelSettings& settings);
  bool stop() override;
  /// Gives up its ends of the devices; after stop().
  void close();

  /// Sends the preamble some times and looks for it, `within_s` around where it should be, in the
  /// stream without an end. Throws UsrpError if less than half of them are found.
  Synchronisation synchronise(std::size_t probes, double within_s);
  void set_lead(std::int64_t lead_ns) { settings_.lead_ns = lead_ns; }
  [[nodiscard]] ChannelCounts counts() const;
  /// Among which a receiver with the transmitter's clock looks for one burst.
  static std::size_t common_clock_positions(const PreambleShape& preamble);
  /// What ended the stream, if something did.
  [[nodiscard]] std::string error() const { return stream_->error(); }

 private:
  struct Burst {
    std::uint64_t id;
    pmt::pmt_t meta;
    std::int64_t begin;  // at the transmitter
    std::size_t length;
    std::int64_t expected;  // at the receiver, of the window
    std::size_t margin;
  };

  void transmit(const pmt::pmt_t& message);
  void take(const Burst& burst, std::optional<std::span<const gr_complex>> samples);
  void publish_lost(const Burst& burst, Outcome why);
  [[nodiscard]] std::int64_t begin_of_burst(std::int64_t begin_ns);

  std::shared_ptr<BurstSender> sender_;
  std::shared_ptr<SampleStream> stream_;
  std::shared_ptr<HalfDuplex> half_duplex_;
  PreambleShape preamble_;
  UsrpChannelSettings settings_;
  std::unique_ptr<BurstSearch> gate_;
  std::int64_t earliest_ = 0;  // when the burst before ended
  std::int64_t latest_ = 0;    // when its window did

  // The stream's thread may go on while this block goes away.
  struct Shared {
    std::mutex taking;  // while a window is taken
    mutable std::mutex mutex;
    DelayTracking tracking;
    std::map<Outcome, std::uint64_t> lost;
    bool closed = false;
    explicit Shared(bool common_clock) : tracking(common_clock) {}
  };
  std::shared_ptr<Shared> shared_;
};

}  // namespace gr::nagi
