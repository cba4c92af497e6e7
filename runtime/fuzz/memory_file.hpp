// SPDX-License-Identifier: Apache-2.0
//
// A file in memory, for code that opens files by their paths.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "io/descriptor.hpp"

namespace nagi::fuzz {

class MemoryFile {
 public:
  explicit MemoryFile(std::span<const std::uint8_t> content = {})
      : file_(memfd_create("fuzz", MFD_CLOEXEC)) {
    const auto written = ::write(file_.get(), content.data(), content.size());
    if (written != static_cast<ssize_t>(content.size())) std::abort();
  }

  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(file_.get()); }

 private:
  io::Descriptor file_;
};

}  // namespace nagi::fuzz
