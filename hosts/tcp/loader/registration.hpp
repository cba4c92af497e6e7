// SPDX-License-Identifier: Apache-2.0
//
// A scheme in the kernel. It is there as long as this object: the kernel holds it by a link, which it
// removes with the process, however that ends. Connections that run the scheme keep its programs until
// they end; no new one can choose it.
#pragma once

#include <bpf/libbpf.h>

#include <cstdint>
#include <memory>
#include <string>

#include "io/descriptor.hpp"
#include "kernel.hpp"
#include "object.hpp"

namespace nagi::tcp {

class Registration {
 public:
  /// Loads `object` and registers it as `name`. Throws InputError if the kernel refuses, with what it
  /// says.
  Registration(const Object& object, const std::string& name, const Kernel& kernel);

  /// The object as it is loaded.
  [[nodiscard]] const bpf_object* object() const { return object_.get(); }
  /// The map of a name; -1 if the object has none.
  [[nodiscard]] int map(const char* name) const;
  /// A variable in .bss as the kernel has it, whatever the programs do to it; as long as this object.
  [[nodiscard]] const volatile std::uint64_t* zeroed_word(std::size_t offset);

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
