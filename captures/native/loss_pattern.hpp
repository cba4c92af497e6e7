// SPDX-License-Identifier: Apache-2.0
//
// Losses in sending order give bursts and gaps as RFC 3611, section 4.7.2, has them, with Gmin 16:
// a burst begins and ends with a loss and has nowhere in it 16 packets received one after the
// other; a single loss with 16 received on both sides is part of a gap. Before the first packet and
// after the last one, packets count as received. A burst's length in time is from the sending of
// its first packet lost to that of its last, a gap's from there to the next burst's first.
#pragma once

#include <cstdint>
#include <map>

namespace nagi::captures {

constexpr std::int64_t gap_packets_least = 16;  // Gmin

/// Bursts, gaps and runs of losses among packets in the order of their sending.
class LossPattern {
 public:
  void add(bool lost, std::int64_t time_ns);
  /// After the last packet.
  void finish();

  struct Periods {
    std::int64_t count = 0;
    std::int64_t packets = 0;
    std::int64_t lost = 0;
    double time_ns = 0;
  };
  [[nodiscard]] const Periods& bursts() const { return bursts_; }
  [[nodiscard]] const Periods& gaps() const { return gaps_; }
  /// Losses one after the other: how many, how often.
  [[nodiscard]] const std::map<std::int64_t, std::int64_t>& runs() const { return runs_; }

 private:
  void end_cluster();
  void end_gap(std::int64_t at, std::int64_t time_ns);

  Periods bursts_;
  Periods gaps_;
  std::map<std::int64_t, std::int64_t> runs_;
  std::int64_t packets_ = 0;
  std::int64_t last_ns_ = 0;
  std::int64_t run_ = 0;
  // Losses with fewer than Gmin packets received between them.
  std::int64_t cluster_lost_ = 0;
  std::int64_t cluster_first_ = 0;
  std::int64_t cluster_first_ns_ = 0;
  std::int64_t cluster_last_ = 0;
  std::int64_t cluster_last_ns_ = 0;
  std::int64_t gap_first_ = 0;
  std::int64_t gap_first_ns_ = 0;
};

}  // namespace nagi::captures
