// SPDX-License-Identifier: Apache-2.0
//
// Transmissions of a radio. The model samples no losses for them, because a radio carries each
// transmission and reports its outcome. The model needs this outcome at the instant at which the
// packet would be delivered or, with ARQ, `feedback` after the transmission if that is earlier. If
// the outcome is missing then, the model waits.
#pragma once

#include <deque>
#include <vector>

#include "model/packet.hpp"

namespace nagi::model {

/// Transmissions that wait for their outcomes.
class RadioOutcomes {
 public:
  void start(const Transmission& transmission) { started_.push_back(transmission); }
  void end(const Transmission& transmission) { ended_.push_back(transmission); }
  /// Report the outcome of the first transmission that has started and has no outcome yet.
  void report(bool lost, std::int16_t snr) { outcomes_.push_back({lost, snr}); }

  /// The transmissions that have started since the caller last emptied this list.
  [[nodiscard]] std::vector<Transmission>& started() { return started_; }
  [[nodiscard]] bool has_ended() const { return !ended_.empty(); }
  [[nodiscard]] const Transmission& first_ended() const { return ended_.front(); }
  /// Return whether the radio has reported the outcome of the first transmission that has ended.
  [[nodiscard]] bool has_outcome() const { return !outcomes_.empty(); }
  /// Remove and return the first transmission that has ended, with its outcome.
  Transmission resolve_first() {
    Transmission first = ended_.front();
    first.lost = outcomes_.front().lost;
    first.snr = outcomes_.front().snr;
    ended_.pop_front();
    outcomes_.pop_front();
    return first;
  }
  [[nodiscard]] std::size_t size() const { return ended_.size(); }
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Transmission& ended : ended_) visit(ended.packet);
  }

 private:
  std::vector<Transmission> started_;
  std::deque<Transmission> ended_;
  struct Outcome {
    bool lost;
    std::int16_t snr;
  };
  std::deque<Outcome> outcomes_;  // in the order of transmissions, from the first of `ended_` on
};

}  // namespace nagi::model
