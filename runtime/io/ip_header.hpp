// SPDX-License-Identifier: Apache-2.0
//
// What of an IP packet's header an emulator needs: its ECN field (RFC 3168, section 5), something
// to know the packet by, and the checksum of what it carries. Frames that are no IP, or too short
// to be, have neither.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nagi::io {

/// An Ethernet frame, from its first byte.
struct FrameView {
  std::uint8_t* data;
  std::size_t length;
};

class IpHeader {
 public:
  explicit IpHeader(FrameView frame);

  /// Whether its sender understands marks: ECT(0) or ECT(1).
  [[nodiscard]] bool is_ecn_capable() const;
  /// Sets Congestion Experienced, and IPv4's checksum right.
  void mark();
  /// IPv4 identification << 16 | checksum of TCP, UDP or ICMP; 0 if there is none. It stays the
  /// same from hop to hop and hardly ever is another packet's at the same time. It is how packets
  /// in captures are found again in the emulator's record.
  [[nodiscard]] std::uint32_t identity() const;
  /// Completes the checksum of TCP or UDP if its sender left that to hardware: it is the
  /// pseudo-header's sum then, and wrong. Returns whether it was. A checksum that is right, one
  /// that is wrong in another way, and UDP's 0 (none, RFC 768) stay as they are.
  bool complete_checksum();

 private:
  [[nodiscard]] std::uint16_t word(std::size_t at) const {
    return static_cast<std::uint16_t>(ip_[at] << 8 | ip_[at + 1]);
  }
  void put(std::size_t at, std::uint16_t word) {
    ip_[at] = static_cast<std::uint8_t>(word >> 8);
    ip_[at + 1] = static_cast<std::uint8_t>(word);
  }
  [[nodiscard]] std::size_t checksum_place() const;

  std::uint8_t* ip_ = nullptr;
  std::size_t length_ = 0;     // of what is there of the packet
  std::size_t header_ = 0;     // bytes of the IP header
  std::uint8_t version_ = 0;   // 4, 6, or 0: not IP
  std::uint8_t protocol_ = 0;  // of the payload
};

}  // namespace nagi::io
