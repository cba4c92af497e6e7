// SPDX-License-Identifier: Apache-2.0
//
// Captures that nagi's programs write, as pcapng (draft-ietf-opsawg-pcapng) with timestamps in
// nanoseconds. They contain dropped packets, truncated to their headers, with the cause as a
// comment, or complete sent packets.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/background_file.hpp"

namespace nagi::io {

class PcapngFile {
 public:
  /// The number of bytes of a packet that are stored: the complete packet, or the headers of a
  /// dropped packet.
  static constexpr std::uint32_t whole = 262'144;
  static constexpr std::uint32_t headers = 128;
  /// One of pcap's link types.
  static constexpr std::uint16_t ethernet = 1;

  /// Create the file, with one interface per name in `interfaces`. Packets are truncated to
  /// `snap_bytes` bytes. Throws std::system_error if that is not possible.
  PcapngFile(const std::string& path, std::string_view program,
             const std::vector<std::string>& interfaces, std::uint32_t snap_bytes,
             io::WhenBehind when_behind = io::WhenBehind::lose, std::uint16_t link_type = ethernet);

  /// Add a frame of `length` bytes. `interface` is an index in `interfaces`. An empty comment is
  /// not written.
  void add(std::uint32_t interface, std::int64_t realtime_ns, const std::uint8_t* frame,
           std::uint32_t length, std::string_view comment = {});

  [[nodiscard]] io::BackgroundFile& file() { return file_; }

 private:
  io::BackgroundFile file_;
  std::uint32_t snap_bytes_;
  std::vector<std::byte> block_;
};

}  // namespace nagi::io
