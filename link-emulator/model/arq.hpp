// SPDX-License-Identifier: Apache-2.0
//
// Automatic repeat request, selective repeat, between the two ends of a link. The sender repeats a
// transmission that was lost, `feedback` after its end, before all that waits. The far end keeps
// the order: it holds back what was sent later, until a packet is there or given up.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <optional>

#include "model/packet.hpp"

namespace nagi::model {

struct ArqConfig {
  unsigned retries = 0;  // at most, a packet
  Duration feedback{};   // from the end of a transmission until its loss is known to the sender
};

/// The sender's end: transmissions that were lost, until they are repeated.
class Repetitions {
 public:
  /// `transmission` was lost, which the sender knows at `known`.
  void add(Transmission transmission, Instant known) {
    ++transmission.attempt;
    lost_.push_back({transmission, known});
  }
  /// When the next loss becomes known; nothing if none will.
  [[nodiscard]] std::optional<Instant> next_known() const {
    return lost_.empty() ? std::nullopt : std::optional(lost_.front().known);
  }
  /// The next loss becomes known.
  void know_next() {
    known_.push_back(lost_.front().transmission);
    lost_.pop_front();
  }
  /// What is to be repeated now.
  [[nodiscard]] bool has_known() const { return !known_.empty(); }
  Transmission take_known() {
    const Transmission next = known_.front();
    known_.pop_front();
    return next;
  }
  [[nodiscard]] bool is_empty() const { return lost_.empty() && known_.empty(); }
  [[nodiscard]] std::size_t size() const { return lost_.size() + known_.size(); }
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Lost& lost : lost_) visit(lost.transmission.packet);
    for (const Transmission& known : known_) visit(known.packet);
  }

 private:
  struct Lost {
    Transmission transmission;
    Instant known;
  };
  std::deque<Lost> lost_;  // as `feedback` is the same for all, in the order of `known`
  std::deque<Transmission> known_;
};

/// The far end: packets in the order in which they were first sent.
class Resequencer {
 public:
  struct Landed {
    Packet packet;
    std::uint64_t order = 0;
    Instant at;             // when it is there, or is no longer expected
    bool given_up = false;  // it never arrives
  };
  /// Takes one in, and calls `release` for each that waits for none before it any more; not before
  /// those are there.
  template <class Release>
  void land(const Landed& landed, Release release) {
    take(landed.order, landed.at, landed, release);
  }
  /// One has passed, or is not expected, and from `at` on none is to wait for it.
  template <class Release>
  void pass(std::uint64_t order, Instant at, Release release) {
    take(order, at, std::nullopt, release);
  }
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [order, landed] : held_) {
      if (landed && !landed->given_up) visit(landed->packet);
    }
  }

 private:
  template <class Release>
  void take(std::uint64_t order, Instant at, const std::optional<Landed>& landed, Release release) {
    if (order != next_) {
      held_[order] = landed;
      return;
    }
    if (landed) release(*landed);
    ++next_;
    for (auto first = held_.begin(); first != held_.end() && first->first == next_;
         first = held_.erase(first)) {
      if (first->second) {
        at = first->second->at = std::max(at, first->second->at);
        release(*first->second);
      }
      ++next_;
    }
  }

  std::map<std::uint64_t, std::optional<Landed>> held_;  // nothing: has passed
  std::uint64_t next_ = 0;
};

}  // namespace nagi::model
