// SPDX-License-Identifier: Apache-2.0
//
// Finds bursts and gaps of losses in the order of sending, as RFC 3611, section 4.7.2, defines
// them, with Gmin 16. A burst begins and ends with a loss, and does not contain 16 successive
// packets that were received. A single loss between at least 16 received packets on both sides
// belongs to a gap. Packets before the first and after the last packet count as received. The
// duration of a burst is the time from sending its first lost packet to sending its last lost
// packet. A gap lasts from the last lost packet of a burst to the first lost packet of the next
// burst.
#pragma once

#include <cstdint>
#include <map>

namespace nagi::captures {

constexpr std::int64_t min_gap_packets = 16;  // Gmin

/// Counts bursts, gaps and runs of losses.
class LossPattern {
 public:
  /// Add the next packet in the order of sending.
  void add(bool lost, std::int64_t time_ns);
  /// Complete the counts after the last packet.
  void finish();

  /// Totals over all bursts, or over all gaps.
  struct Periods {
    std::int64_t count = 0;
    std::int64_t packets = 0;
    std::int64_t lost = 0;
    double time_ns = 0;
  };
  [[nodiscard]] const Periods& bursts() const { return bursts_; }
  [[nodiscard]] const Periods& gaps() const { return gaps_; }
  /// Return number of successive losses -> how often such a run of losses occurred.
  [[nodiscard]] const std::map<std::int64_t, std::int64_t>& runs() const { return runs_; }

 private:
  void end_cluster();
  void end_gap(std::int64_t at, std::int64_t time_ns);

  Periods bursts_;
  Periods gaps_;
  std::map<std::int64_t, std::int64_t> runs_;
  std::int64_t packets_ = 0;
  std::int64_t last_ns_ = 0;
  std::int64_t run_ = 0;  // losses in the current run
  // The current cluster: losses with fewer than Gmin packets received between them.
  std::int64_t cluster_lost_ = 0;
  std::int64_t cluster_first_ = 0;
  std::int64_t cluster_first_ns_ = 0;
  std::int64_t cluster_last_ = 0;
  std::int64_t cluster_last_ns_ = 0;
  std::int64_t gap_first_ = 0;
  std::int64_t gap_first_ns_ = 0;
};

}  // namespace nagi::captures
