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

  /// The ECN field: 0 not ECT, 1 ECT(1), 2 ECT(0), 3 CE.
  [[nodiscard]] std::uint8_t ecn() const;
  /// A hash of addresses, ports and protocol: the same for all packets of a flow. Fragments go by
  /// their addresses and protocol.
  [[nodiscard]] std::uint32_t flow() const;
  /// Changes a bit of the last byte: checksums of TCP and UDP are wrong then.
  void corrupt();
  /// Sets Congestion Experienced, and IPv4's checksum right.
  void mark();
  /// IPv4 identification << 16 | checksum of TCP, UDP or ICMP; 0 if there is none. IPv6 has no
  /// identification: of TCP, the sum of sequence and acknowledgement number modulo 2^16 takes its
  /// place. It stays the same from hop to hop and hardly ever is another packet's at the same time.
  /// It is how packets in captures are found again in the emulator's record.
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
