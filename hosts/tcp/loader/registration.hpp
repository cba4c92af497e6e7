// SPDX-License-Identifier: Apache-2.0
//
// A scheme that is registered in the kernel.
#pragma once

#include <bpf/libbpf.h>

#include <cstdint>
#include <memory>
#include <string>

#include "io/descriptor.hpp"
#include "kernel.hpp"
#include "object.hpp"

namespace nagi::tcp {

/// The registration of a scheme, which lasts as long as this object. It is bound to a link (bpf(2)), which the kernel
/// removes when the process ends, even if the process is killed. After that, no new connection can choose the scheme.
/// Connections that run the scheme continue with it until they end.
class Registration {
 public:
  /// Load `object` and register it as `name`. Throws InputError with the kernel's message if the kernel refuses it.
  Registration(const Object& object, const std::string& name, const Kernel& kernel);

  /// The loaded object.
  [[nodiscard]] const bpf_object* object() const { return object_.get(); }
  /// Return the descriptor of the map with this name, or -1 if the object has no such map.
  [[nodiscard]] int find_map(const char* name) const;
  /// Return a pointer to the variable at `offset` bytes in .bss, in the memory that the programs use. The pointer is
  /// valid as long as this object exists.
  [[nodiscard]] const volatile std::uint64_t* map_zeroed_word(std::size_t offset);

 private:
  struct Unmap {
    std::size_t size;
    void operator()(void* memory) const;
  };

  std::unique_ptr<bpf_object, decltype(&bpf_object__close)> object_;
  io::Descriptor link_;
  std::unique_ptr<void, Unmap> zeroed_;
};

}  // namespace nagi::tcp
