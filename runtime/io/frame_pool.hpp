// SPDX-License-Identifier: Apache-2.0
//
// Memory for frames in flight, divided into slots. Registered slots lie in one piece of memory,
// which AF_XDP shares with the kernel, and their number is fixed. The number of other slots grows
// when no slot is free, so that the pool does not limit the queues of the configuration. Each slot
// has room for a note about its frame, in a cache line that the frame needs in any case.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <vector>

namespace nagi::io {

using Slot = std::uint32_t;

class FramePool {
 public:
  static constexpr std::size_t registered_slot_bytes = 2048;
  /// The smallest offset of a frame in a registered slot (XDP_PACKET_HEADROOM).
  static constexpr std::size_t registered_headroom = 256;
  static constexpr std::size_t note_bytes = 48;

  /// Create a pool. `slot_bytes` is the length of the longest frame in slots that are not
  /// registered.
  explicit FramePool(std::size_t slot_bytes, std::size_t registered = 0)
      : slot_bytes_(slot_bytes), registered_(static_cast<Slot>(registered)) {
    if (registered == 0) return;
    constexpr std::size_t page = 2 << 20;  // a huge page, since accesses to frames are far apart
    const std::size_t bytes = (registered * registered_slot_bytes + page - 1) / page * page;
    memory_.reset(static_cast<std::uint8_t*>(std::aligned_alloc(page, bytes)));
    if (!memory_) throw std::bad_alloc();
    madvise(memory_.get(), bytes, MADV_HUGEPAGE);  // failure does no harm
    for (Slot slot = registered_; slot-- > 0;) free_registered_.push_back(slot);
  }

  /// Allocate at least `slots` slots that are not registered, and write to them, so that they are
  /// in physical memory.
  void reserve(std::size_t slots) {
    while (chunks_.size() * slots_per_chunk < slots) {
      grow();
      std::memset(chunks_.back().get(), 0, slots_per_chunk * stride());
    }
  }

  /// Take a slot that is not registered.
  Slot take() {
    if (free_.empty()) grow();
    const Slot slot = free_.back();
    free_.pop_back();
    return slot;
  }
  /// Take a registered slot. At least one must be free.
  Slot take_registered() {
    const Slot slot = free_registered_.back();
    free_registered_.pop_back();
    return slot;
  }
  [[nodiscard]] std::size_t free_registered() const { return free_registered_.size(); }
  [[nodiscard]] bool is_registered(Slot slot) const { return slot < registered_; }
  void give_back(Slot slot) { (is_registered(slot) ? free_registered_ : free_).push_back(slot); }

  [[nodiscard]] std::uint8_t* data(Slot slot) {
    if (is_registered(slot)) return memory_.get() + slot * registered_slot_bytes;
    const Slot index = slot - registered_;
    return &chunks_[index / slots_per_chunk][(index % slots_per_chunk) * stride() + cache_line];
  }
  /// Return the note of a slot. It is valid until the slot is given back or sent.
  template <typename Note>
  [[nodiscard]] Note& note(Slot slot) {
    static_assert(sizeof(Note) <= note_bytes && std::is_trivially_copyable_v<Note>);
    constexpr std::size_t before_frame = registered_headroom - cache_line;
    std::uint8_t* front = is_registered(slot) ? data(slot) + before_frame : data(slot) - cache_line;
    return *std::launder(reinterpret_cast<Note*>(front));
  }
  [[nodiscard]] std::size_t slot_bytes() const { return slot_bytes_; }
  [[nodiscard]] std::span<std::uint8_t> registered_memory() {
    return {memory_.get(), registered_ * registered_slot_bytes};
  }

 private:
  static constexpr std::size_t slots_per_chunk = 64;  // few at a time, since growing takes time
  static constexpr std::size_t cache_line = 64;       // the kernel uses the part without a note

  [[nodiscard]] std::size_t stride() const { return slot_bytes_ + cache_line; }

  void grow() {
    const auto first = static_cast<Slot>(registered_ + chunks_.size() * slots_per_chunk);
    chunks_.push_back(std::make_unique_for_overwrite<std::uint8_t[]>(slots_per_chunk * stride()));
    for (Slot slot = first + slots_per_chunk; slot-- > first;) free_.push_back(slot);
  }

  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  std::size_t slot_bytes_;
  Slot registered_;
  std::unique_ptr<std::uint8_t, Free> memory_;
  std::vector<std::unique_ptr<std::uint8_t[]>> chunks_;
  std::vector<Slot> free_;
  std::vector<Slot> free_registered_;
};

}  // namespace nagi::io
