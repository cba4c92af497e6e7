// SPDX-License-Identifier: Apache-2.0
//
// The playback of a stream (Zhang, Tsaoussidis: TCP-Real, 2001, section 3). At every tick of a
// timer, a reader tries to read a chunk from the bytes that have arrived. If there are fewer bytes,
// the attempt fails and reads nothing, and the rest of the playback is delayed by one tick. The
// success ratio is the share of attempts that read a chunk.
#pragma once

#include <cstdint>

namespace nagi::applications {

class Playback {
 public:
  explicit Playback(std::uint64_t chunk_bytes) : chunk_(chunk_bytes) {}

  /// Make an attempt when `available` bytes can be read; `ended` is true if no more bytes will
  /// arrive. Return the number of bytes to read: a chunk, the rest of the stream at the end of the
  /// stream, or 0 if the attempt fails or the stream is finished.
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
