// SPDX-License-Identifier: Apache-2.0
//
// Statistics of received numbered packets: losses, one-way delays, jitter (RFC 3550, section 6.4.1
// and appendix A.8), and the quality of a voice call.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <vector>

#include "arithmetic/voice.hpp"

namespace nagi::applications {

/// The packets that a receiver has received, and statistics of them.
class Reception {
 public:
  /// Add a received packet. Packets are numbered from 0. Times are nanoseconds since 1970, by the
  /// clocks of the sender and of the receiver. Packets with negative times or too large numbers are
  /// ignored, because nagi-traffic did not send them.
  void receive(std::uint64_t number, std::int64_t sent_ns, std::int64_t received_ns) {
    if (number >= max_packets || sent_ns < 0 || received_ns < 0) return;
    const std::int64_t delay = received_ns - sent_ns;
    std::int64_t& stored_delay = delay_of(number);
    if (stored_delay != missing) {
      ++duplicates_;
      return;
    }
    if (received_ > 0) {
      if (number < last_number_) ++reordered_;
      const double difference =
          std::abs(static_cast<double>(delay) - static_cast<double>(last_delay_));
      jitter_ns_ += (difference - jitter_ns_) / 16;
      max_jitter_ns_ = std::max(max_jitter_ns_, jitter_ns_);
    }
    last_number_ = std::max(last_number_, number);
    last_delay_ = delay;
    stored_delay = delay;
    ++received_;
  }

  [[nodiscard]] std::uint64_t received() const { return received_; }
  [[nodiscard]] std::uint64_t duplicates() const { return duplicates_; }
  /// Return the number of packets that arrived after a packet with a higher number.
  [[nodiscard]] std::uint64_t reordered() const { return reordered_; }
  /// Return the number of packets up to the highest number received.
  [[nodiscard]] std::uint64_t expected() const { return received_ > 0 ? last_number_ + 1 : 0; }
  [[nodiscard]] std::uint64_t lost() const { return expected() - received_; }
  /// Return the jitter of RFC 3550 after the last packet.
  [[nodiscard]] double jitter_ns() const { return jitter_ns_; }
  /// Return the largest jitter after any packet.
  [[nodiscard]] double max_jitter_ns() const { return max_jitter_ns_; }

  /// Return the one-way delays of all received packets, sorted.
  [[nodiscard]] std::vector<std::int64_t> delays() const {
    std::vector<std::int64_t> delays;
    delays.reserve(received_);
    for_each_page([&](const Page* page, std::size_t size) {
      if (page == nullptr) return;
      std::copy_if(page->begin(), page->begin() + static_cast<std::ptrdiff_t>(size),
                   std::back_inserter(delays), [](std::int64_t delay) { return delay != missing; });
    });
    std::sort(delays.begin(), delays.end());
    return delays;
  }

  /// The quality of a voice call (voice.hpp).
  struct Call {
    double delay_ms;       ///< delay from mouth to ear
    double unplayed;       ///< share of packets that were lost, or arrived too late to be played
    double burst_ratio;    ///< burst ratio of unplayed packets (G.107, section 7.5)
    double rating;         ///< the rating R
    double opinion_score;  ///< the mean opinion score (MOS)
  };

  /// Return the quality of a voice call. The receiver plays every packet `playout_ms` after the
  /// smallest one-way delay. A packet has `packet_ms` of voice, and is sent after the last sample.
  /// At least one packet must have been received.
  [[nodiscard]] Call call(const Codec& codec, double packet_ms, double playout_ms) const {
    std::int64_t min_delay = std::numeric_limits<std::int64_t>::max();
    for_each_page([&](const Page* page, std::size_t size) {
      for (std::size_t i = 0; page != nullptr && i < size; ++i) {
        if ((*page)[i] != missing) min_delay = std::min(min_delay, (*page)[i]);
      }
    });
    // The sum is limited to the range of int64_t.
    const std::int64_t max_playout =
        std::numeric_limits<std::int64_t>::max() - std::max<std::int64_t>(0, min_delay);
    const std::int64_t max_delay =
        min_delay + std::min(max_playout, static_cast<std::int64_t>(playout_ms * 1e6));
    std::uint64_t unplayed = 0;
    std::uint64_t bursts = 0;
    bool in_burst = false;
    const auto count_packets = [&](bool is_unplayed, std::uint64_t packets) {
      unplayed += is_unplayed ? packets : 0;
      bursts += is_unplayed && !in_burst ? 1 : 0;
      in_burst = is_unplayed;
    };
    for_each_page([&](const Page* page, std::size_t size) {
      if (page == nullptr) count_packets(true, size);
      for (std::size_t i = 0; page != nullptr && i < size; ++i) {
        count_packets((*page)[i] == missing || (*page)[i] > max_delay, 1);
      }
    });
    const double share = static_cast<double>(unplayed) / static_cast<double>(expected());
    double ratio = 1;
    if (bursts > 0) {
      ratio = static_cast<double>(unplayed) / static_cast<double>(bursts) * (1 - share);
    }
    const double delay_ms = static_cast<double>(max_delay) / 1e6 + packet_ms;
    const double r = rating(codec, delay_ms, share, ratio);
    return {delay_ms, share, std::max(1.0, ratio), r, applications::opinion_score(r)};
  }

 private:
  static constexpr std::int64_t missing = std::numeric_limits<std::int64_t>::min();
  static constexpr std::uint64_t max_packets = 1ULL
                                               << 28;  // packets with higher numbers are ignored

  // Numbers come from the network and may be arbitrary. So delays are stored in pages, and only
  // pages with a received packet are allocated.
  static constexpr std::size_t page_size = 512;
  using Page = std::array<std::int64_t, page_size>;

  /// Return the stored delay of a packet; allocate its page if necessary.
  std::int64_t& delay_of(std::uint64_t number) {
    const std::size_t index = number / page_size;
    if (index >= pages_.size()) pages_.resize(index + 1);
    if (!pages_[index]) {
      pages_[index] = std::make_unique<Page>();
      pages_[index]->fill(missing);
    }
    return (*pages_[index])[number % page_size];
  }

  /// Call `visit(page, size)` for every page up to the highest number received. `page` is null if
  /// no packet of the page arrived. `size` is the number of packets up to the highest number.
  template <class Visit>
  void for_each_page(const Visit& visit) const {
    std::uint64_t remaining = expected();
    for (const auto& page : pages_) {
      const std::uint64_t size = std::min<std::uint64_t>(remaining, page_size);
      visit(page.get(), size);
      remaining -= size;
    }
  }

  std::vector<std::unique_ptr<Page>> pages_;  // delays by number; null if none arrived
  std::uint64_t received_ = 0;
  std::uint64_t duplicates_ = 0;
  std::uint64_t reordered_ = 0;
  std::uint64_t last_number_ = 0;
  std::int64_t last_delay_ = 0;
  double jitter_ns_ = 0;
  double max_jitter_ns_ = 0;
};

}  // namespace nagi::applications
