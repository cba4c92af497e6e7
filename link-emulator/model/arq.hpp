// SPDX-License-Identifier: Apache-2.0
//
// Automatic repeat request (selective repeat) between the two ends of a link. The sender repeats a
// lost transmission `feedback` after the end of that transmission, and before the packets that
// wait. The receiver keeps the order of packets: it holds back the packets after a missing one
// until the missing packet arrives or the sender gives it up.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <optional>

#include "model/packet.hpp"

namespace nagi::model {

struct ArqConfig {
  unsigned retries = 0;  // maximum number of repetitions per packet
  Duration feedback{};   // from the end of a transmission until the sender learns its outcome
};

/// The sender: lost transmissions that are to be repeated.
class Repetitions {
 public:
  /// Add a lost transmission; `known_at` is the instant at which the sender learns of the loss.
  void add(Transmission transmission, Instant known_at) {
    ++transmission.attempt;
    lost_.push_back({transmission, known_at});
  }
  /// Return the instant at which the sender learns of the next loss, or nothing.
  [[nodiscard]] std::optional<Instant> next_feedback() const {
    return lost_.empty() ? std::nullopt : std::optional(lost_.front().known_at);
  }
  /// Let the sender learn of the next loss, whose packet can then be repeated.
  void learn_next() {
    repeatable_.push_back(lost_.front().transmission);
    lost_.pop_front();
  }
  /// Return whether a transmission can be repeated now.
  [[nodiscard]] bool has_repetition() const { return !repeatable_.empty(); }
  Transmission take_repetition() {
    const Transmission next = repeatable_.front();
    repeatable_.pop_front();
    return next;
  }
  [[nodiscard]] bool is_empty() const { return lost_.empty() && repeatable_.empty(); }
  [[nodiscard]] std::size_t size() const { return lost_.size() + repeatable_.size(); }
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Lost& lost : lost_) visit(lost.transmission.packet);
    for (const Transmission& transmission : repeatable_) visit(transmission.packet);
  }

 private:
  struct Lost {
    Transmission transmission;
    Instant known_at;
  };
  std::deque<Lost> lost_;  // in the order of `known_at`, because `feedback` is constant
  std::deque<Transmission> repeatable_;  // losses that the sender has learnt of
};

/// The receiver: releases packets in the order in which they were first sent.
class Resequencer {
 public:
  struct Received {
    Packet packet;
    std::uint64_t order = 0;
    Instant at;             // instant of the arrival, or at which the sender gave the packet up
    bool given_up = false;  // the packet never arrives
  };
  /// Add a packet, and call `release(received)` for each packet whose predecessors have all arrived
  /// or were given up. The instant `at` of a released packet is not earlier than that of any
  /// predecessor.
  template <class Release>
  void receive(const Received& received, Release release) {
    insert(received.order, received.at, received, release);
  }
  /// Skip packet number `order`: from `at` on, later packets do not wait for it.
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

  std::map<std::uint64_t, std::optional<Received>>
      held_;  // by order; without a value if it was skipped
  std::uint64_t next_ = 0;
};

}  // namespace nagi::model
