// SPDX-License-Identifier: Apache-2.0
//
// When a station may send: carrier sense, physical and virtual (NAV), interframe spaces, and the
// backoff that counts down while the air is idle (IEEE 802.11-2020, 10.3.2 to 10.3.4).
//
// A backoff of n slots ends n slots after DIFS, or EIFS, of idle air. What the air's becoming busy
// interrupts goes on after the next such space; slots that were not whole count again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "model/medium/phy.hpp"

namespace nagi::model {

class ChannelAccess {
 public:
  explicit ChannelAccess(const Phy& phy)
      : slot_(phy.slot()), difs_(phy.difs()), eifs_(phy.eifs()) {}

  /// Another signal, or a transmission of its own, keeps the air busy.
  void begin_busy(Instant at) {
    freeze(at);
    ++busy_;
  }
  void end_busy(Instant at) {
    if (--busy_ != 0) return;
    idle_since_ = at;
    if (eifs_is_due_) eifs_until_ = at + eifs_;
    eifs_is_due_ = false;
  }
  /// An exchange of its own is under way, during which it does not count: waiting for an answer, or
  /// about to give one.
  void begin_exchange(Instant at) {
    freeze(at);
    ++exchanges_;
  }
  void end_exchange(Instant at) {
    --exchanges_;
    not_before_ = std::max(not_before_, at);
  }

  /// NAV: others have reserved the air.
  void reserve(Instant until) { reserved_until_ = std::max(reserved_until_, until); }
  void end_reservation(Instant at) { reserved_until_ = std::min(reserved_until_, at); }
  [[nodiscard]] Instant reserved_until() const { return reserved_until_; }

  /// A frame was not received correctly; the air is idle, or will be.
  void note_error() {
    if (busy_ == 0) {
      eifs_until_ = std::max(eifs_until_, idle_since_ + eifs_);
    } else {
      eifs_is_due_ = true;
    }
  }
  /// One was: DIFS will do.
  void note_correct() {
    eifs_is_due_ = false;
    eifs_until_ = Instant::min();
  }

  [[nodiscard]] bool is_idle(Instant at) const {
    return busy_ == 0 && exchanges_ == 0 && reserved_until_ <= at;
  }
  [[nodiscard]] bool has_backoff() const { return backoff_.has_value(); }
  /// Begins a backoff of so many slots.
  void back_off(std::uint64_t slots, Instant at) {
    backoff_ = slots;
    not_before_ = std::max(not_before_, at);
  }
  void end_backoff() { backoff_.reset(); }

  /// When it may send if nothing happens until then; nothing: it is busy.
  [[nodiscard]] std::optional<Instant> next() const {
    if (busy_ != 0 || exchanges_ != 0) return std::nullopt;
    return counts_from() + static_cast<std::int64_t>(backoff_.value_or(0)) * slot_;
  }

 private:
  [[nodiscard]] Instant counts_from() const {
    const Instant spaced = std::max(idle_since_, reserved_until_) + difs_;
    return std::max({spaced, eifs_until_, not_before_});
  }
  void freeze(Instant at) {
    if (busy_ != 0 || exchanges_ != 0 || !backoff_) return;
    const Instant from = counts_from();
    if (at > from) *backoff_ -= std::min<std::uint64_t>(*backoff_, (at - from) / slot_);
  }

  Duration slot_;
  Duration difs_;
  Duration eifs_;
  unsigned busy_ = 0;
  unsigned exchanges_ = 0;
  Instant idle_since_{};
  Instant reserved_until_{};
  Instant eifs_until_ = Instant::min();
  bool eifs_is_due_ = false;
  Instant not_before_{};
  std::optional<std::uint64_t> backoff_;
};

}  // namespace nagi::model
