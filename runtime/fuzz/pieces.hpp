// SPDX-License-Identifier: Apache-2.0
//
// Divides the input of a fuzz target into numbers and byte strings.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace nagi::fuzz {

class Pieces {
 public:
  Pieces(const std::uint8_t* data, std::size_t size) : remaining_(data, size) {}

  [[nodiscard]] bool is_empty() const { return remaining_.empty(); }
  /// Take a number. Missing bytes are 0.
  template <class Number>
  Number number() {
    Number value = 0;
    const auto bytes = take(sizeof value);
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  /// Take a length of 16 bits, then as many bytes, or the remaining bytes if there are fewer.
  std::span<const std::uint8_t> sized() { return take(number<std::uint16_t>()); }
  std::span<const std::uint8_t> rest() { return take(remaining_.size()); }

 private:
  std::span<const std::uint8_t> take(std::size_t count) {
    const auto first = remaining_.first(std::min(count, remaining_.size()));
    remaining_ = remaining_.subspan(first.size());
    return first;
  }

  std::span<const std::uint8_t> remaining_;
};

}  // namespace nagi::fuzz
