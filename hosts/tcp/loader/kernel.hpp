// SPDX-License-Identifier: Apache-2.0
//
// What the running kernel has for schemes of our own, by its type information (BTF).
#pragma once

#include <cstdint>
#include <string>

namespace nagi::tcp {

struct Kernel {
  std::string release;
  std::uint32_t cong_control_arguments = 4;  // 2 before Linux 6.10
};

/// Throws InputError, with the reason, if this kernel takes no scheme.
Kernel inspect_kernel();

}  // namespace nagi::tcp
