// SPDX-License-Identifier: Apache-2.0
//
// Rate adaptation by statistics, as mac80211's Minstrel does it
// (net/mac80211/rc80211_minstrel_ht.c, and rc80211_minstrel.c before Linux 5.14), with its
// constants: every 50 ms the share of transmissions of each mode that were received enters an
// average that keeps 96/128 of what it was. From it follows what a mode would carry in packets of
// 1,200 bytes: nothing below a share of 10 %, and nothing more above 90 %. The first transmission
// of a packet is sent in the mode that carries most, the second in the next, further ones in the
// mode that is received most often. One packet in ten looks around: its first transmission is in a
// mode drawn at random from those that would carry more than the best one does if none were lost.
// Shares are in units of 1/4096, as there.
//
// Unlike there, modes are few, so that there are no groups of them, and frames are not aggregated.
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
    std::vector<std::size_t> worth_a_try;
    for (std::size_t i = 0; i < modes_.size(); ++i) {
      if (i != best_ && carried(modes_[i], certain) > carried(modes_[best_])) {
        worth_a_try.push_back(i);
      }
    }
    if (worth_a_try.empty()) return best_;
    return worth_a_try[draws_.draw(number) % worth_a_try.size()];
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
  static constexpr std::uint64_t lookaround = 10;  // packets
  static constexpr std::uint64_t certain = 4096;
  static constexpr std::uint64_t kept = 96;  // of 128

  struct Statistics {
    Duration air_time{};
    std::uint64_t successes = 0;  // since the last update
    std::uint64_t attempts = 0;
    std::uint64_t share = 0;  // of 4096; 0 as long as it is not known
    bool is_known = false;
  };

  static std::uint64_t carried(const Statistics& mode, std::uint64_t share) {
    if (share < certain * 10 / 100) return 0;
    const auto time = static_cast<std::uint64_t>(std::max<std::int64_t>(mode.air_time.count(), 1));
    return std::min(share, certain * 90 / 100) * 1'000'000'000'000 / time;
  }
  static std::uint64_t carried(const Statistics& mode) { return carried(mode, mode.share); }

  void update(Instant at) {
    if (at < next_update_) return;
    next_update_ = at + interval;
    for (Statistics& mode : modes_) {
      if (mode.attempts == 0) continue;
      const std::uint64_t share = mode.successes * certain / mode.attempts;
      mode.share = mode.is_known ? (mode.share * kept + share * (128 - kept)) / 128 : share;
      mode.is_known = true;
      mode.successes = mode.attempts = 0;
    }
    rank();
  }

  void rank() {
    best_ = second_ = safest_ = 0;
    for (std::size_t i = 1; i < modes_.size(); ++i) {
      if (carried(modes_[i]) > carried(modes_[best_])) best_ = i;
      // Above 95 %, what counts is how much is carried.
      const bool both = std::min(modes_[i].share, modes_[safest_].share) > certain * 95 / 100;
      if (both ? carried(modes_[i]) > carried(modes_[safest_])
               : modes_[i].share > modes_[safest_].share) {
        safest_ = i;
      }
    }
    for (std::size_t i = 1; i < modes_.size(); ++i) {
      if (second_ == best_ || (i != best_ && carried(modes_[i]) > carried(modes_[second_]))) {
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
