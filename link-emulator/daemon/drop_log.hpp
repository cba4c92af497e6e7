// SPDX-License-Identifier: Apache-2.0
//
// drops.pcapng: every packet that was dropped, cut to its headers, with when and why. One interface
// a direction ("wireless.a_to_b"), nanosecond stamps, the cause as the packet's comment. Format:
// draft-ietf-opsawg-pcapng.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/background_file.hpp"

namespace nagi::daemon {

class DropLog {
 public:
  /// Throws std::system_error if the file cannot be made.
  DropLog(const std::string& path, const std::string& program,
          const std::vector<std::string>& interfaces);

  /// Notes a frame of `length` bytes.
  void add(std::uint32_t interface, std::int64_t realtime_ns, const std::uint8_t* frame,
           std::uint32_t length, std::string_view cause);

  [[nodiscard]] io::BackgroundFile& file() { return file_; }

 private:
  io::BackgroundFile file_;
  std::vector<std::byte> block_;
};

}  // namespace nagi::daemon
