// SPDX-License-Identifier: Apache-2.0
//
// Memory that a BPF program and this process share.
#pragma once

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "io/descriptor.hpp"

namespace nagi::bench {

/// A BPF array that this process can read and write. Throws std::system_error.
template <typename Entry>
class SharedArray {
 public:
  SharedArray(const char* name, std::uint32_t entries) : entries_(entries) {
    LIBBPF_OPTS(bpf_map_create_opts, options);
    options.map_flags = BPF_F_MMAPABLE;
    const int map = bpf_map_create(BPF_MAP_TYPE_ARRAY, name, 4, sizeof(Entry), entries, &options);
    if (map < 0) io::throw_errno("creating a BPF array");
    map_ = io::Descriptor(map);
    address_ = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
    if (address_ == MAP_FAILED) io::throw_errno("mapping a BPF array");
  }
  SharedArray(const SharedArray&) = delete;
  SharedArray& operator=(const SharedArray&) = delete;
  ~SharedArray() { munmap(address_, bytes()); }

  [[nodiscard]] int map() const { return map_.get(); }
  [[nodiscard]] std::span<Entry> entries() const {
    return {static_cast<Entry*>(address_), entries_};
  }

 private:
  [[nodiscard]] std::size_t bytes() const { return std::size_t{entries_} * sizeof(Entry); }

  std::uint32_t entries_;
  io::Descriptor map_;
  void* address_ = nullptr;
};

}  // namespace nagi::bench
