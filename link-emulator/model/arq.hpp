// SPDX-License-Identifier: Apache-2.0
//
// Automatic repeat request (selective repeat) between the two ends of a link. The sender repeats a
// lost transmission `feedback` after its end, before the packets that wait. The receiver keeps the
// order: it holds back packets that were sent later until the missing packet arrives or is given
// up.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <optional>

#include "model/packet.hpp"

namespace nagi::model {

struct ArqConfig {
  unsigned retries = 0;  // maximum number of repetitions per packet
  Duration
      feedback{};  // time from the end of a transmission until the sender knows that it was lost
};

/// The sender: lost transmissions that are to be repeated.
class Repetitions {
 public:
  /// Add a lost transmission, of which the sender learns at `known`.
  void add(Transmission transmission, Instant known) {
    ++transmission.attempt;
    lost_.push_back({transmission, known});
  }
  /// Return the instant at which the sender learns of the next loss, or nothing.
  [[nodiscard]] std::optional<Instant> next_known() const {
    return lost_.empty() ? std::nullopt : std::optional(lost_.front().known);
  }
  /// Let the sender learn of the next loss.
  void learn_next() {
    known_.push_back(lost_.front().transmission);
    lost_.pop_front();
  }
  /// Return whether a transmission can be repeated now.
  [[nodiscard]] bool has_repetition() const { return !known_.empty(); }
  Transmission take_repetition() {
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
  std::deque<Lost> lost_;           // in the order of `known`, since all have the same `feedback`
  std::deque<Transmission> known_;  // losses that the sender knows
};

/// The receiver: releases packets in the order in which they were first sent.
class Resequencer {
 public:
  struct Received {
    Packet packet;
    std::uint64_t order = 0;
    Instant at;             // arrival, or the instant at which it is given up
    bool given_up = false;  // the packet never arrives
  };
  /// Add a packet, and call `release` for each packet whose predecessors have all arrived or been
  /// given up. Their `at` is at least that of their predecessors.
  template <class Release>
  void receive(const Received& received, Release release) {
    insert(received.order, received.at, received, release);
  }
  /// Note that from `at` on no packet waits for the packet with this number.
  template <class Release>
  void skip(std::uint64_t order, Instant at, Release release) {
    insert(order, at, std::nullopt, release);
  }
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [order, received] : held_) {
      if (received && !received->given_up) visit(received->packet);
    }
  }

 private:
  template <class Release>
  void insert(std::uint64_t order, Instant at, const std::optional<Received>& received,
              Release release) {
    if (order != next_) {
      held_[order] = received;
      return;
    }
    if (received) release(*received);
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

  std::map<std::uint64_t, std::optional<Received>> held_;  // without a value: skipped
  std::uint64_t next_ = 0;
};

}  // namespace nagi::model
