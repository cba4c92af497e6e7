// SPDX-License-Identifier: Apache-2.0
//
// Takes an input of a fuzz target apart.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace nagi::fuzz {

class Pieces {
 public:
  Pieces(const std::uint8_t* data, std::size_t size) : left_(data, size) {}

  [[nodiscard]] bool is_empty() const { return left_.empty(); }
  /// A number; bytes that are missing are 0.
  template <class Number>
  Number number() {
    Number value = 0;
    const auto bytes = take(sizeof value);
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  /// A length of 16 bits, then that many bytes, or what is left of them.
  std::span<const std::uint8_t> sized() { return take(number<std::uint16_t>()); }
  std::span<const std::uint8_t> rest() { return take(left_.size()); }

 private:
  std::span<const std::uint8_t> take(std::size_t count) {
    const auto first = left_.first(std::min(count, left_.size()));
    left_ = left_.subspan(first.size());
    return first;
  }

  std::span<const std::uint8_t> left_;
};

}  // namespace nagi::fuzz
