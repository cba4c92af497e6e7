// SPDX-License-Identifier: Apache-2.0
//
// The playback of a stream (Zhang, Tsaoussidis: TCP-Real, 2001, section 3): a reader tries at every
// tick of a timer to read a chunk from what has arrived. If there is less, the attempt fails and
// reads nothing, and playback is delayed from then on. The success ratio is the share of attempts
// that found their chunk.
#pragma once

#include <cstdint>

namespace nagi::applications {

class Playback {
 public:
  explicit Playback(std::uint64_t chunk_bytes) : chunk_(chunk_bytes) {}

  /// Make an attempt while `available` bytes wait; `ended` is true if no more will arrive. Return
  /// the number of bytes to read: a chunk, or the rest of the stream at its end.
  std::uint64_t attempt(std::uint64_t available, bool ended) {
    if (ended && available == 0) {
      finished_ = true;
      return 0;
    }
    ++attempts_;
    if (available < chunk_ && !ended) return 0;
    ++successes_;
    return available < chunk_ ? available : chunk_;
  }

  [[nodiscard]] std::uint64_t attempts() const { return attempts_; }
  [[nodiscard]] std::uint64_t successes() const { return successes_; }
  /// Return whether the stream has been played to its end.
  [[nodiscard]] bool finished() const { return finished_; }

 private:
  std::uint64_t chunk_;
  std::uint64_t attempts_ = 0;
  std::uint64_t successes_ = 0;
  bool finished_ = false;
};

}  // namespace nagi::applications
