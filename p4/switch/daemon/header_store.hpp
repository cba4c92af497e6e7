// SPDX-License-Identifier: Apache-2.0
//
// Keeps the headers with which packets arrived, for the log of drops, until the packets' outcome is
// known. Copies of a packet share their headers.
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

  /// Store the headers of a frame until they have been released once more than they were shared.
  Slot keep(const std::uint8_t* frame, std::uint32_t length) {
    if (free_.empty()) {
      free_.push_back(static_cast<Slot>(all_.size()));
      all_.emplace_back();
    }
    const Slot slot = free_.back();
    free_.pop_back();
    Kept& kept = all_[slot];
    std::copy_n(frame, std::min<std::size_t>(length, kept.headers.bytes.size()),
                kept.headers.bytes.begin());
    kept.headers.length = length;
    kept.owners = 1;
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
  struct Kept {
    Headers headers;
    std::uint32_t owners = 0;
  };

  std::deque<Kept> all_;
  std::vector<Slot> free_;
};

}  // namespace nagi::p4
