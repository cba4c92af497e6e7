// SPDX-License-Identifier: Apache-2.0
//
// Memory for frames in flight: equal slots, handed out and taken back, grown when none is free, so
// that no hidden limit stands beside the queue that was asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace nagi::io {

using Slot = std::uint32_t;

class FramePool {
 public:
  /// `slot_bytes`: the longest frame a slot can hold.
  explicit FramePool(std::size_t slot_bytes) : slot_bytes_(slot_bytes) {}

  /// Has at least `slots` of them from the start, in memory that is already there.
  void reserve(std::size_t slots) {
    while (chunks_.size() * slots_a_chunk < slots) {
      grow();
      std::memset(chunks_.back().get(), 0, slots_a_chunk * slot_bytes_);
    }
  }

  Slot take() {
    if (free_.empty()) grow();
    const Slot slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void give_back(Slot slot) { free_.push_back(slot); }

  [[nodiscard]] std::uint8_t* data(Slot slot) {
    return &chunks_[slot / slots_a_chunk][(slot % slots_a_chunk) * slot_bytes_];
  }
  [[nodiscard]] std::size_t slot_bytes() const { return slot_bytes_; }

 private:
  static constexpr std::size_t slots_a_chunk = 64;  // little at a time: growing takes time

  void grow() {
    const auto first = static_cast<Slot>(chunks_.size() * slots_a_chunk);
    chunks_.push_back(std::make_unique_for_overwrite<std::uint8_t[]>(slots_a_chunk * slot_bytes_));
    for (Slot slot = first + slots_a_chunk; slot-- > first;) free_.push_back(slot);
  }

  std::size_t slot_bytes_;
  std::vector<std::unique_ptr<std::uint8_t[]>> chunks_;
  std::vector<Slot> free_;
};

}  // namespace nagi::io
