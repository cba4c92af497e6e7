// SPDX-License-Identifier: Apache-2.0
//
// BPF arrays in memory that BPF programs and this process share.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "io/descriptor.hpp"

namespace nagi::bench {

/// The entries of a BPF array (with BPF_F_MMAPABLE), which this process can read and write.
template <typename Entry>
class SharedArray {
 public:
  /// Map the array with the descriptor `map` into memory. Throws std::system_error.
  SharedArray(int map, std::uint32_t entries)
      : entries_(entries),
        address_(mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, map, 0)) {
    if (address_ == MAP_FAILED) io::throw_errno("mapping a BPF array");
  }
  SharedArray(const SharedArray&) = delete;
  SharedArray& operator=(const SharedArray&) = delete;
  ~SharedArray() { munmap(address_, bytes()); }

  [[nodiscard]] std::span<Entry> entries() const {
    return {static_cast<Entry*>(address_), entries_};
  }

 private:
  [[nodiscard]] std::size_t bytes() const { return std::size_t{entries_} * sizeof(Entry); }

  std::uint32_t entries_;
  void* address_;
};

}  // namespace nagi::bench
