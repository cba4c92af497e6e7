// SPDX-License-Identifier: Apache-2.0
//
// Captures that our programs write, as pcapng (draft-ietf-opsawg-pcapng), with nanosecond stamps:
// every packet that was dropped, cut to its headers, with the cause as its comment; or whole
// packets as they left.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/background_file.hpp"

namespace nagi::io {

class PcapngFile {
 public:
  /// What is kept of a packet: all of it, or of one that was dropped its headers.
  static constexpr std::uint32_t whole = 262'144;
  static constexpr std::uint32_t headers = 128;
  /// Of pcap's link types.
  static constexpr std::uint16_t ethernet = 1;

  /// Throws std::system_error if the file cannot be made.
  PcapngFile(const std::string& path, std::string_view program,
             const std::vector<std::string>& interfaces, std::uint32_t snap_bytes,
             io::WhenBehind when_behind = io::WhenBehind::lose, std::uint16_t link_type = ethernet);

  /// Notes a frame of `length` bytes; no comment if that is empty.
  void add(std::uint32_t interface, std::int64_t realtime_ns, const std::uint8_t* frame,
           std::uint32_t length, std::string_view comment = {});

  [[nodiscard]] io::BackgroundFile& file() { return file_; }

 private:
  io::BackgroundFile file_;
  std::uint32_t snap_bytes_;
  std::vector<std::byte> block_;
};

}  // namespace nagi::io
