// SPDX-License-Identifier: Apache-2.0
//
// What a receiver makes of numbered packets: losses, one-way delays, jitter (RFC 3550, section
// 6.4.1 and appendix A.8), and what is left of a voice call.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "arithmetic/voice.hpp"

namespace nagi::applications {

class Reception {
 public:
  /// A packet with its number, from 0, and when it was sent and received. Times are nanoseconds by
  /// the clocks of the two ends.
  void receive(std::uint64_t number, std::int64_t sent_ns, std::int64_t received_ns) {
    const std::int64_t delay = received_ns - sent_ns;
    if (number >= max_packets) return;
    if (number >= delays_.size()) delays_.resize(number + 1, missing);
    if (delays_[number] != missing) {
      ++duplicates_;
      return;
    }
    if (received_ > 0) {
      if (number < last_number_) ++reordered_;
      const double difference = std::abs(static_cast<double>(delay - last_delay_));
      jitter_ns_ += (difference - jitter_ns_) / 16;
      max_jitter_ns_ = std::max(max_jitter_ns_, jitter_ns_);
    }
    last_number_ = std::max(last_number_, number);
    last_delay_ = delay;
    delays_[number] = delay;
    ++received_;
  }

  [[nodiscard]] std::uint64_t received() const { return received_; }
  [[nodiscard]] std::uint64_t duplicates() const { return duplicates_; }
  /// Packets that came after one with a higher number.
  [[nodiscard]] std::uint64_t reordered() const { return reordered_; }
  /// Packets up to the highest number received.
  [[nodiscard]] std::uint64_t expected() const { return delays_.size(); }
  [[nodiscard]] std::uint64_t lost() const { return expected() - received_; }
  /// RFC 3550's, after the last packet; and the largest on the way.
  [[nodiscard]] double jitter_ns() const { return jitter_ns_; }
  [[nodiscard]] double max_jitter_ns() const { return max_jitter_ns_; }

  /// Of all packets received, sorted.
  [[nodiscard]] std::vector<std::int64_t> delays() const {
    std::vector<std::int64_t> found;
    found.reserve(received_);
    for (const std::int64_t each : delays_) {
      if (each != missing) found.push_back(each);
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  struct Call {
    double delay_ms;       ///< from mouth to ear
    double unplayed;       ///< share of packets lost, or too late to be played
    double burst_ratio;    ///< of these; G.107, section 7.5
    double rating;         ///< R
    double opinion_score;  ///< MOS
  };

  /// A call whose receiver plays every packet `playout_ms` after the smallest one-way delay seen;
  /// `packet_ms` of voice are in a packet, and wait for its last sample. Needs a packet received.
  [[nodiscard]] Call call(const Codec& codec, double packet_ms, double playout_ms) const {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (const std::int64_t each : delays_) {
      if (each != missing) least = std::min(least, each);
    }
    const std::int64_t latest = least + static_cast<std::int64_t>(playout_ms * 1e6);
    std::uint64_t unplayed = 0;
    std::uint64_t bursts = 0;
    bool in_burst = false;
    for (const std::int64_t each : delays_) {
      const bool misses = each == missing || each > latest;
      unplayed += misses ? 1 : 0;
      bursts += misses && !in_burst ? 1 : 0;
      in_burst = misses;
    }
    const double share = static_cast<double>(unplayed) / static_cast<double>(delays_.size());
    double ratio = 1;
    if (bursts > 0) {
      ratio = static_cast<double>(unplayed) / static_cast<double>(bursts) * (1 - share);
    }
    const double delay_ms = static_cast<double>(latest) / 1e6 + packet_ms;
    const double r = rating(codec, delay_ms, share, ratio);
    return {delay_ms, share, std::max(1.0, ratio), r, applications::opinion_score(r)};
  }

 private:
  static constexpr std::int64_t missing = std::numeric_limits<std::int64_t>::min();
  static constexpr std::uint64_t max_packets = 1ULL << 28;  // what is beyond is none of ours

  std::vector<std::int64_t> delays_;  // by number
  std::uint64_t received_ = 0;
  std::uint64_t duplicates_ = 0;
  std::uint64_t reordered_ = 0;
  std::uint64_t last_number_ = 0;
  std::int64_t last_delay_ = 0;
  double jitter_ns_ = 0;
  double max_jitter_ns_ = 0;
};

}  // namespace nagi::applications
