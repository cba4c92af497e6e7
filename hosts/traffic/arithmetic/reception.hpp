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

class Reception {
 public:
  /// A packet with its number, from 0, and when it was sent and received. Times are nanoseconds
  /// since 1970 by the clocks of the two ends; what was sent before that is none of ours.
  void receive(std::uint64_t number, std::int64_t sent_ns, std::int64_t received_ns) {
    if (number >= max_packets || sent_ns < 0 || received_ns < 0) return;
    const std::int64_t delay = received_ns - sent_ns;
    std::int64_t& place = place_of(number);
    if (place != missing) {
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
    place = delay;
    ++received_;
  }

  [[nodiscard]] std::uint64_t received() const { return received_; }
  [[nodiscard]] std::uint64_t duplicates() const { return duplicates_; }
  /// Return the number of packets that arrived after a packet with a higher number.
  [[nodiscard]] std::uint64_t reordered() const { return reordered_; }
  /// Return the number of packets up to the highest number received.
  [[nodiscard]] std::uint64_t expected() const { return received_ > 0 ? last_number_ + 1 : 0; }
  [[nodiscard]] std::uint64_t lost() const { return expected() - received_; }
  /// RFC 3550's, after the last packet; and the largest on the way.
  [[nodiscard]] double jitter_ns() const { return jitter_ns_; }
  [[nodiscard]] double max_jitter_ns() const { return max_jitter_ns_; }

  /// Return the one-way delays of all received packets, sorted.
  [[nodiscard]] std::vector<std::int64_t> delays() const {
    std::vector<std::int64_t> found;
    found.reserve(received_);
    for_each_page([&](const Page* page, std::size_t size) {
      if (page == nullptr) return;
      std::copy_if(page->begin(), page->begin() + static_cast<std::ptrdiff_t>(size),
                   std::back_inserter(found), [](std::int64_t each) { return each != missing; });
    });
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
    for_each_page([&](const Page* page, std::size_t size) {
      for (std::size_t i = 0; page != nullptr && i < size; ++i) {
        if ((*page)[i] != missing) least = std::min(least, (*page)[i]);
      }
    });
    const std::int64_t room =
        std::numeric_limits<std::int64_t>::max() - std::max<std::int64_t>(0, least);
    const std::int64_t latest = least + std::min(room, static_cast<std::int64_t>(playout_ms * 1e6));
    std::uint64_t unplayed = 0;
    std::uint64_t bursts = 0;
    bool in_burst = false;
    const auto play = [&](bool misses, std::uint64_t packets) {
      unplayed += misses ? packets : 0;
      bursts += misses && !in_burst ? 1 : 0;
      in_burst = misses;
    };
    for_each_page([&](const Page* page, std::size_t size) {
      if (page == nullptr) play(true, size);
      for (std::size_t i = 0; page != nullptr && i < size; ++i) {
        play((*page)[i] == missing || (*page)[i] > latest, 1);
      }
    });
    const double share = static_cast<double>(unplayed) / static_cast<double>(expected());
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
  static constexpr std::uint64_t max_packets = 1ULL
                                               << 28;  // packets with higher numbers are ignored

  // Numbers come from the network, so memory is allocated only for the numbers that arrived.
  static constexpr std::size_t page_size = 512;
  using Page = std::array<std::int64_t, page_size>;

  std::int64_t& place_of(std::uint64_t number) {
    const std::size_t index = number / page_size;
    if (index >= pages_.size()) pages_.resize(index + 1);
    if (!pages_[index]) {
      pages_[index] = std::make_unique<Page>();
      pages_[index]->fill(missing);
    }
    return (*pages_[index])[number % page_size];
  }

  /// Calls `visit` with every page up to the highest number received, null where none came, and how
  /// much of it that is.
  template <class Visit>
  void for_each_page(const Visit& visit) const {
    std::uint64_t left = expected();
    for (const auto& page : pages_) {
      const std::uint64_t size = std::min<std::uint64_t>(left, page_size);
      visit(page.get(), size);
      left -= size;
    }
  }

  std::vector<std::unique_ptr<Page>> pages_;  // delays by number; null: none came
  std::uint64_t received_ = 0;
  std::uint64_t duplicates_ = 0;
  std::uint64_t reordered_ = 0;
  std::uint64_t last_number_ = 0;
  std::int64_t last_delay_ = 0;
  double jitter_ns_ = 0;
  double max_jitter_ns_ = 0;
};

}  // namespace nagi::applications
