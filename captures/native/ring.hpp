// SPDX-License-Identifier: Apache-2.0
//
// A queue in contiguous memory. Its capacity changes only by grow(), which doubles the capacity.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace nagi::captures {

template <typename T>
class Ring {
 public:
  static constexpr std::size_t min_capacity = 4;

  [[nodiscard]] bool empty() const { return first_ == last_; }
  [[nodiscard]] std::size_t size() const { return last_ - first_; }  // modulo 2^32
  [[nodiscard]] std::size_t capacity() const { return slots_.size(); }
  [[nodiscard]] bool full() const { return size() == slots_.size(); }
  [[nodiscard]] T& front() { return slots_[first_ & mask_]; }
  /// Return the element at `index` from the front.
  [[nodiscard]] T& operator[](std::size_t index) {
    return slots_[(first_ + static_cast<std::uint32_t>(index)) & mask_];
  }
  [[nodiscard]] T& back() { return slots_[(last_ - 1) & mask_]; }
  void pop() { ++first_; }
  void pop_back() { --last_; }
  /// Append a value. The ring must not be full.
  void push(const T& value) { slots_[last_++ & mask_] = value; }
  void grow() {
    std::vector<T> larger(slots_.empty() ? min_capacity : 2 * slots_.size());
    const std::size_t count = size();
    for (std::size_t i = 0; i < count; ++i) larger[i] = (*this)[i];
    slots_ = std::move(larger);
    mask_ = static_cast<std::uint32_t>(slots_.size() - 1);
    first_ = 0;
    last_ = static_cast<std::uint32_t>(count);
  }

 private:
  std::vector<T> slots_;
  std::uint32_t mask_ = 0;
  // Counters of the elements removed and appended; modulo the capacity they are slots.
  std::uint32_t first_ = 0;
  std::uint32_t last_ = 0;
};

}  // namespace nagi::captures
