// SPDX-License-Identifier: Apache-2.0
//
// A BPF object file that CMake embedded (cmake/bpf.cmake): its maps and programs in the kernel, for
// as long as this exists or something else holds them. Programs are attached by links, which end
// with the process.
#pragma once

#include <bpf/libbpf.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "io/descriptor.hpp"

namespace nagi::io {

constexpr int tcx_ingress = 46;  // BPF_TCX_INGRESS, newer than Debian 12's headers

class BpfObject {
 public:
  /// `image`: the object file. Its programs and maps are made by load(). Throws std::system_error.
  explicit BpfObject(std::span<const unsigned char> image);

  /// Before load(): how many entries a map has.
  void resize_map(const char* map, std::uint32_t entries);
  /// Before load(): a program is not needed.
  void leave_out(const char* program);
  /// Throws std::system_error, with what the kernel's verifier says.
  void load();

  // Descriptors, which this object closes.
  [[nodiscard]] int map(const char* name) const;
  [[nodiscard]] int program(const char* name) const;

 private:
  std::unique_ptr<bpf_object, decltype(&bpf_object__close)> object_;
};

/// Has `sockets`, a map through which a program redirects frames, send those of queue 0 to an
/// AF_XDP socket. Throws std::system_error.
void put_socket(int sockets, int socket);

/// Attaches a program to an interface until the descriptor is closed. `type`: BPF_XDP or
/// tcx_ingress; `flags`: XDP_FLAGS_*. Throws std::system_error.
Descriptor attach(int program, unsigned interface, int type, std::uint32_t flags);

}  // namespace nagi::io
