// SPDX-License-Identifier: Apache-2.0
//
// Stores the headers with which packets arrived, for the log of drops, until the outcome of the
// packets is known. All copies of a packet share one slot of the store.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include "io/pcapng_file.hpp"

namespace nagi::p4 {

struct Headers {
  std::array<std::uint8_t, io::PcapngFile::headers> bytes;
  std::uint32_t length = 0;  // length of the frame
};

class HeaderStore {
 public:
  using Slot = std::uint32_t;
  static constexpr Slot none = std::numeric_limits<Slot>::max();

  /// Store the headers of a frame, and return their slot, which has one owner. share() adds an
  /// owner and release() removes one. Without owners, the slot is free.
  Slot keep(const std::uint8_t* frame, std::uint32_t length) {
    if (free_.empty()) {
      free_.push_back(static_cast<Slot>(all_.size()));
      all_.emplace_back();
    }
    const Slot slot = free_.back();
    free_.pop_back();
    Stored& stored = all_[slot];
    std::copy_n(frame, std::min<std::size_t>(length, stored.headers.bytes.size()),
                stored.headers.bytes.begin());
    stored.headers.length = length;
    stored.owners = 1;
    return slot;
  }
  void share(Slot slot) {
    if (slot != none) ++all_[slot].owners;
  }
  void release(Slot slot) {
    if (slot != none && --all_[slot].owners == 0) free_.push_back(slot);
  }
  [[nodiscard]] const Headers& at(Slot slot) const { return all_[slot].headers; }

 private:
  struct Stored {
    Headers headers;
    std::uint32_t owners = 0;
  };

  std::deque<Stored> all_;
  std::vector<Slot> free_;
};

}  // namespace nagi::p4
