// SPDX-License-Identifier: Apache-2.0
//
// Channel access of a station: physical and virtual carrier sense (NAV), interframe spaces, and the
// backoff that counts down while the air is idle (IEEE 802.11-2020, 10.3.2 to 10.3.4).
//
// A backoff of n slots ends n slots after the air has been idle for DIFS or EIFS. If the air
// becomes busy during the backoff, the backoff resumes after the next DIFS or EIFS; only whole
// slots count.
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

  /// Begin a period in which a signal, or the station's own transmission, keeps the air busy.
  /// Periods may overlap.
  void begin_busy(Instant at) {
    freeze(at);
    ++busy_;
  }
  /// End a busy period.
  void end_busy(Instant at) {
    if (--busy_ != 0) return;
    idle_since_ = at;
    if (eifs_is_due_) eifs_until_ = at + eifs_;
    eifs_is_due_ = false;
  }
  /// Begin a period in which the station waits for a response, or will send a response after SIFS.
  /// The backoff does not count down in this time.
  void begin_exchange(Instant at) {
    freeze(at);
    ++exchanges_;
  }
  /// End a period of begin_exchange().
  void end_exchange(Instant at) {
    --exchanges_;
    not_before_ = std::max(not_before_, at);
  }

  /// Extend the NAV: another station has reserved the air until `until`.
  void reserve(Instant until) { reserved_until_ = std::max(reserved_until_, until); }
  /// Reset the NAV to `at` if it ends later.
  void end_reservation(Instant at) { reserved_until_ = std::min(reserved_until_, at); }
  [[nodiscard]] Instant reserved_until() const { return reserved_until_; }

  /// Record that a frame was received with an error: the next space is EIFS.
  void note_error() {
    if (busy_ == 0) {
      eifs_until_ = std::max(eifs_until_, idle_since_ + eifs_);
    } else {
      eifs_is_due_ = true;
    }
  }
  /// Record that a frame was received correctly: the next space is DIFS.
  void note_correct() {
    eifs_is_due_ = false;
    eifs_until_ = Instant::min();
  }

  [[nodiscard]] bool is_idle(Instant at) const {
    return busy_ == 0 && exchanges_ == 0 && reserved_until_ <= at;
  }
  [[nodiscard]] bool has_backoff() const { return backoff_.has_value(); }
  /// Begin a backoff of `slots` slots.
  void back_off(std::uint64_t slots, Instant at) {
    backoff_ = slots;
    not_before_ = std::max(not_before_, at);
  }
  void end_backoff() { backoff_.reset(); }

  /// Return the time at which the station may send if the air stays idle, or nothing while the air
  /// is busy or the station exchanges frames.
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
