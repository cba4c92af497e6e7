// SPDX-License-Identifier: Apache-2.0
//
// The parts of an IP header that an emulator needs: the ECN field (RFC 3168, section 5), an
// identity of the packet, and the checksum of the payload. For frames that are no IP packets, or
// too short, all functions return 0 and change nothing.
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

  /// Return the ECN field: 0 not ECT, 1 ECT(1), 2 ECT(0), 3 CE.
  [[nodiscard]] std::uint8_t ecn() const;
  /// Return a hash of addresses, ports and protocol, which is equal for all packets of a flow. For
  /// fragments it covers only addresses and protocol.
  [[nodiscard]] std::uint32_t flow() const;
  /// Change a bit of the last byte, which makes the checksums of TCP and UDP wrong.
  void corrupt();
  /// Set Congestion Experienced, and update the checksum of IPv4.
  void mark();
  /// Return an identity of the packet: IPv4 identification << 16 | checksum of TCP, UDP or ICMP, or
  /// 0 if there is none. IPv6 has no identification; for TCP, the sum of sequence and
  /// acknowledgement number modulo 2^16 replaces it. The identity of a packet is equal on all hops,
  /// and rarely equal to the identity of another packet at the same time. It serves to match
  /// packets in captures with the emulator's records.
  [[nodiscard]] std::uint32_t identity() const;
  /// Complete the checksum of TCP or UDP if the sender left this to hardware. The checksum field
  /// then contains the sum of the pseudo-header. Return whether the checksum was completed. Correct
  /// checksums, other wrong checksums, and UDP's 0 (no checksum, RFC 768) do not change.
  bool complete_checksum();

 private:
  [[nodiscard]] std::uint16_t word(std::size_t at) const {
    return static_cast<std::uint16_t>(ip_[at] << 8 | ip_[at + 1]);
  }
  void put(std::size_t at, std::uint16_t word) {
    ip_[at] = static_cast<std::uint8_t>(word >> 8);
    ip_[at + 1] = static_cast<std::uint8_t>(word);
  }
  [[nodiscard]] std::size_t checksum_offset() const;

  std::uint8_t* ip_ = nullptr;
  std::size_t length_ = 0;     // available bytes of the packet
  std::size_t header_ = 0;     // length of the IP header
  std::uint8_t version_ = 0;   // 4, 6, or 0 if the packet is no IP packet
  std::uint8_t protocol_ = 0;  // protocol of the payload
};

}  // namespace nagi::io
