// SPDX-License-Identifier: Apache-2.0
//
// The running kernel's support for eBPF congestion controls, read from its type information (BTF).
#pragma once

#include <cstdint>
#include <string>

namespace nagi::tcp {

struct Kernel {
  std::string release;
  std::uint32_t cong_control_arguments = 4;  // 2 before Linux 6.10
};

/// Inspect the running kernel. Throws InputError, with the reason, if the kernel cannot load schemes.
Kernel inspect_kernel();

}  // namespace nagi::tcp
