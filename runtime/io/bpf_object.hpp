// SPDX-License-Identifier: Apache-2.0
//
// A BPF object file that CMake has embedded (cmake/bpf.cmake). Its maps and programs are in the
// kernel while this object, or anything else that uses them, exists. Programs are attached by BPF
// links, which end with the process.
#pragma once

#include <bpf/libbpf.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "io/descriptor.hpp"

namespace nagi::io {

constexpr int tcx_ingress = 46;  // BPF_TCX_INGRESS, which Debian 12's headers lack

class BpfObject {
 public:
  /// Open the object file `image`. load() creates its programs and maps. Throws std::system_error.
  explicit BpfObject(std::span<const unsigned char> image);

  /// Set the number of entries of a map. Call this before load().
  void resize_map(const char* map, std::uint32_t entries);
  /// Exclude a program that is not needed. Call this before load().
  void leave_out(const char* program);
  /// Load the object. Throws std::system_error with the messages of the kernel's verifier.
  void load();

  // These functions return descriptors, which this object closes.
  [[nodiscard]] int map(const char* name) const;
  [[nodiscard]] int program(const char* name) const;

 private:
  std::unique_ptr<bpf_object, decltype(&bpf_object__close)> object_;
};

/// Store the AF_XDP socket `socket` for the frames of queue 0 in `sockets`, the descriptor of a map
/// through which a program redirects frames. Throws std::system_error.
void put_socket(int sockets, int socket);

/// Attach a program to an interface until the returned descriptor is closed. `type` is BPF_XDP or
/// tcx_ingress, `flags` are XDP_FLAGS_*. Throws std::system_error.
Descriptor attach(int program, unsigned interface, int type, std::uint32_t flags);

}  // namespace nagi::io
