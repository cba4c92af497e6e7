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
  using Place = std::uint32_t;
  static constexpr Place none = std::numeric_limits<Place>::max();

  /// Store the headers of a frame until they have been released once more than they were shared.
  Place keep(const std::uint8_t* frame, std::uint32_t length) {
    if (free_.empty()) {
      free_.push_back(static_cast<Place>(all_.size()));
      all_.emplace_back();
    }
    const Place place = free_.back();
    free_.pop_back();
    Kept& kept = all_[place];
    std::copy_n(frame, std::min<std::size_t>(length, kept.headers.bytes.size()),
                kept.headers.bytes.begin());
    kept.headers.length = length;
    kept.owners = 1;
    return place;
  }
  void share(Place place) {
    if (place != none) ++all_[place].owners;
  }
  void release(Place place) {
    if (place != none && --all_[place].owners == 0) free_.push_back(place);
  }
  [[nodiscard]] const Headers& at(Place place) const { return all_[place].headers; }

 private:
  struct Kept {
    Headers headers;
    std::uint32_t owners = 0;
  };

  std::deque<Kept> all_;
  std::vector<Place> free_;
};

}  // namespace nagi::p4
