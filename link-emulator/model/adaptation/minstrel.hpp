// SPDX-License-Identifier: Apache-2.0
//
// Rate adaptation by statistics, as in mac80211's Minstrel (net/mac80211/rc80211_minstrel_ht.c, and
// rc80211_minstrel.c before Linux 5.14), with its constants.
//
// Every 50 ms, the success ratio of each mode enters an average, in which the old value has a
// weight of 96/128. From this average follows the expected throughput of the mode with packets of
// 1,200 bytes. It is 0 below a ratio of 10 %, and does not increase above 90 %. The first
// transmission of a packet uses the mode with the highest throughput, the second the mode with the
// second highest, and further ones the mode with the highest success ratio. One packet in ten
// explores: its first transmission uses a mode drawn at random from those that would have a higher
// throughput than the best mode if no packet were lost. Ratios are in units of 1/4096, as in
// mac80211.
//
// Unlike mac80211, this model has few modes and hence no groups of modes, and it does not aggregate
// frames.
#pragma once

#include <algorithm>
#include <array>

#include "model/adaptation/scheme.hpp"

namespace nagi::model {

struct Minstrel {
  static constexpr std::string_view name = "minstrel";
  static constexpr auto fields() { return std::tuple(); }

  class Model;
};

class Minstrel::Model final : public AdaptationModel {
 public:
  Model(const Minstrel& /*any*/, const std::vector<Mode>& modes, Stream draws) : draws_(draws) {
    for (const Mode& mode : modes) modes_.push_back({mode.air_time(average_packet)});
    rank();
  }

  std::size_t choose(Instant at, unsigned attempt, std::uint64_t number) override {
    update(at);
    if (attempt == 2) return second_;
    if (attempt > 2) return safest_;
    if (++packets_ % lookaround != 0) return best_;
    std::vector<std::size_t> candidates;
    for (std::size_t i = 0; i < modes_.size(); ++i) {
      if (i != best_ && throughput(modes_[i], full_ratio) > throughput(modes_[best_])) {
        candidates.push_back(i);
      }
    }
    if (candidates.empty()) return best_;
    return candidates[draws_.draw(number) % candidates.size()];
  }

  void learn(const Transmission& transmission, Instant at) override {
    update(at);
    Statistics& mode = modes_[transmission.mode];
    ++mode.attempts;
    if (!transmission.lost) ++mode.successes;
  }

 private:
  static constexpr Duration interval = std::chrono::milliseconds(50);
  static constexpr Bytes average_packet{1200};
  static constexpr std::uint64_t lookaround = 10;    // one packet in so many explores
  static constexpr std::uint64_t full_ratio = 4096;  // success ratio of 1
  static constexpr std::uint64_t old_weight = 96;    // weight of the old average, of 128

  struct Statistics {
    Duration air_time{};
    std::uint64_t successes = 0;  // since the last update
    std::uint64_t attempts = 0;
    std::uint64_t ratio = 0;  // average success ratio, in 1/4096
    bool has_ratio = false;
  };

  static std::uint64_t throughput(const Statistics& mode, std::uint64_t ratio) {
    if (ratio < full_ratio * 10 / 100) return 0;
    const auto time = static_cast<std::uint64_t>(std::max<std::int64_t>(mode.air_time.count(), 1));
    return std::min(ratio, full_ratio * 90 / 100) * 1'000'000'000'000 / time;
  }
  static std::uint64_t throughput(const Statistics& mode) { return throughput(mode, mode.ratio); }

  void update(Instant at) {
    if (at < next_update_) return;
    next_update_ = at + interval;
    for (Statistics& mode : modes_) {
      if (mode.attempts == 0) continue;
      const std::uint64_t ratio = mode.successes * full_ratio / mode.attempts;
      mode.ratio =
          mode.has_ratio ? (mode.ratio * old_weight + ratio * (128 - old_weight)) / 128 : ratio;
      mode.has_ratio = true;
      mode.successes = mode.attempts = 0;
    }
    rank();
  }

  void rank() {
    best_ = second_ = safest_ = 0;
    for (std::size_t i = 1; i < modes_.size(); ++i) {
      if (throughput(modes_[i]) > throughput(modes_[best_])) best_ = i;
      // If both ratios are above 95 %, the throughput decides.
      const bool are_both_high =
          std::min(modes_[i].ratio, modes_[safest_].ratio) > full_ratio * 95 / 100;
      if (are_both_high ? throughput(modes_[i]) > throughput(modes_[safest_])
                        : modes_[i].ratio > modes_[safest_].ratio) {
        safest_ = i;
      }
    }
    for (std::size_t i = 1; i < modes_.size(); ++i) {
      if (second_ == best_ || (i != best_ && throughput(modes_[i]) > throughput(modes_[second_]))) {
        second_ = i;
      }
    }
  }

  std::vector<Statistics> modes_;
  Stream draws_;
  Instant next_update_{};
  std::uint64_t packets_ = 0;
  std::size_t best_ = 0;
  std::size_t second_ = 0;
  std::size_t safest_ = 0;
};

}  // namespace nagi::model
