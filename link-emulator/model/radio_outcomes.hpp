// SPDX-License-Identifier: Apache-2.0
//
// Transmissions of a radio. The model samples no losses there: somebody else carries each
// transmission and reports its outcome, which the model needs when the packet is due or, with ARQ,
// after `feedback` if that is sooner. If it has not been reported by then, the model stands still.
#pragma once

#include <deque>
#include <vector>

#include "model/packet.hpp"

namespace nagi::model {

class RadioOutcomes {
 public:
  void start(const Transmission& transmission) { started_.push_back(transmission); }
  void end(const Transmission& transmission) { ended_.push_back(transmission); }
  /// The outcome of the first transmission that has started and has none yet.
  void report(bool lost, std::int16_t snr) { outcomes_.push_back({lost, snr}); }

  /// Transmissions that have started since the caller last emptied this.
  [[nodiscard]] std::vector<Transmission>& started() { return started_; }
  [[nodiscard]] bool has_ended() const { return !ended_.empty(); }
  [[nodiscard]] const Transmission& first_ended() const { return ended_.front(); }
  [[nodiscard]] bool knows_first() const { return !outcomes_.empty(); }
  /// The first transmission that has ended, with its outcome.
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
  std::deque<Outcome> outcomes_;  // of the first of them, and of what is being transmitted
};

}  // namespace nagi::model
