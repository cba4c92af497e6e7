// SPDX-License-Identifier: Apache-2.0
#include "io/ip_header.hpp"

#include <linux/if_ether.h>
#include <netinet/in.h>

namespace nagi::io {

namespace {

constexpr std::size_t tag_bytes = 4;
constexpr std::size_t ipv4_bytes = 20;
constexpr std::size_t ipv6_bytes = 40;
constexpr std::uint8_t ecn_bits = 3;  // 0: not ECN-capable; 1, 2: ECN-capable; 3: marked
constexpr std::uint8_t marked = 3;

/// Return the sum of the Internet checksum (RFC 1071), not yet folded.
std::uint64_t sum_words(const std::uint8_t* data, std::size_t length) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i + 1 < length; i += 2) sum += std::uint64_t{data[i]} << 8 | data[i + 1];
  if (length % 2 != 0) sum += std::uint64_t{data[length - 1]} << 8;
  return sum;
}

std::uint16_t fold(std::uint64_t sum) {
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

}  // namespace

IpHeader::IpHeader(FrameView frame) {
  std::size_t at = ETH_HLEN;
  if (frame.length < at) return;
  const auto type_at = [&frame](std::size_t end) {
    return static_cast<std::uint16_t>(frame.data[end - 2] << 8 | frame.data[end - 1]);
  };
  while ((type_at(at) == ETH_P_8021Q || type_at(at) == ETH_P_8021AD) &&
         at + tag_bytes <= frame.length) {
    at += tag_bytes;
  }
  ip_ = frame.data + at;
  length_ = frame.length - at;
  if (type_at(at) == ETH_P_IP && length_ >= ipv4_bytes && ip_[0] >> 4 == 4) {
    header_ = (ip_[0] & 15U) * 4U;
    version_ = header_ >= ipv4_bytes && header_ <= length_ ? 4 : 0;
    protocol_ = ip_[9];
  } else if (type_at(at) == ETH_P_IPV6 && length_ >= ipv6_bytes && ip_[0] >> 4 == 6) {
    header_ = ipv6_bytes;
    version_ = 6;
    protocol_ = ip_[6];
  }
}

std::uint8_t IpHeader::ecn() const {
  if (version_ == 0) return 0;
  return static_cast<std::uint8_t>((version_ == 4 ? ip_[1] : ip_[1] >> 4) & ecn_bits);
}

std::uint32_t IpHeader::flow() const {
  // FNV-1a, then Murmur's finalizer, which spreads differences over all bits.
  std::uint32_t hash = 2166136261U;
  const auto add = [&hash](const std::uint8_t* data, std::size_t length) {
    for (std::size_t i = 0; i < length; ++i) hash = (hash ^ data[i]) * 16777619U;
  };
  if (version_ == 0) return 0;
  add(&protocol_, 1);
  add(ip_ + (version_ == 4 ? 12 : 8), version_ == 4 ? 8 : 32);
  const bool is_fragment = version_ == 4 && (word(6) & 0x3fff) != 0;
  const bool has_ports = protocol_ == IPPROTO_TCP || protocol_ == IPPROTO_UDP;
  if (has_ports && !is_fragment && header_ + 4 <= length_) add(ip_ + header_, 4);
  hash ^= hash >> 16;
  hash *= 0x85ebca6bU;
  hash ^= hash >> 13;
  hash *= 0xc2b2ae35U;
  return hash ^ hash >> 16;
}

void IpHeader::corrupt() {
  if (version_ == 0) return;
  const std::size_t end = version_ == 4 ? word(2) : ipv6_bytes + word(4);
  if (end > header_ && end <= length_) ip_[end - 1] ^= 1;
}

void IpHeader::mark() {
  if (version_ == 6) {
    ip_[1] |= marked << 4;
  } else if (version_ == 4) {
    // RFC 1624, equation 3: HC' = ~(~HC + ~m + m').
    const std::uint16_t before = word(0);
    ip_[1] |= marked;
    const auto checksum =
        static_cast<std::uint16_t>(~fold(std::uint64_t{static_cast<std::uint16_t>(~word(10))} +
                                         static_cast<std::uint16_t>(~before) + word(0)));
    put(10, checksum);
  }
}

/// Return the offset of the payload's checksum, or 0 if the payload has no checksum.
std::size_t IpHeader::checksum_offset() const {
  const bool is_later_fragment = version_ == 4 && (word(6) & 0x1fff) != 0;
  if (version_ == 0 || is_later_fragment) return 0;
  std::size_t offset = 0;
  switch (protocol_) {
    case IPPROTO_TCP:
      offset = header_ + 16;
      break;
    case IPPROTO_UDP:
      offset = header_ + 6;
      break;
    case IPPROTO_ICMP:
    case IPPROTO_ICMPV6:
      offset = header_ + 2;
      break;
    default:
      return 0;
  }
  return offset + 2 <= length_ ? offset : 0;
}

std::uint32_t IpHeader::identity() const {
  const std::size_t offset = checksum_offset();
  const std::uint32_t checksum = offset != 0 ? word(offset) : 0;
  if (version_ == 4) return std::uint32_t{word(4)} << 16 | checksum;
  if (version_ != 6 || protocol_ != IPPROTO_TCP || header_ + 12 > length_) return checksum;
  // The lower halves of the sequence number and of the acknowledgement number.
  const auto numbers = static_cast<std::uint16_t>(word(header_ + 6) + word(header_ + 10));
  return std::uint32_t{numbers} << 16 | checksum;
}

bool IpHeader::complete_checksum() {
  const std::size_t offset = checksum_offset();
  if (offset == 0 || (protocol_ != IPPROTO_TCP && protocol_ != IPPROTO_UDP)) return false;
  if (protocol_ == IPPROTO_UDP && word(offset) == 0) return false;  // no checksum (RFC 768)
  const std::size_t end = version_ == 4 ? word(2) : ipv6_bytes + word(4);
  const bool is_fragment = version_ == 4 && (word(6) & 0x3fff) != 0;
  if (is_fragment || end > length_ || end < header_) return false;
  // The sum of the pseudo-header: addresses, protocol, length of the payload.
  const std::uint64_t pseudo = (version_ == 4 ? sum_words(ip_ + 12, 8) : sum_words(ip_ + 8, 32)) +
                               protocol_ + (end - header_);
  // A sender with checksum offload stores the sum of the pseudo-header in the checksum field. Only
  // then is the whole packet summed.
  if (fold(pseudo) != word(offset)) return false;
  const std::uint64_t payload = sum_words(ip_ + header_, end - header_);
  if (fold(pseudo + payload) == 0xffff) return false;  // the stored value is also correct
  // The payload's sum includes the sum of the pseudo-header, which is in the checksum field.
  auto checksum = static_cast<std::uint16_t>(~fold(payload));
  // A UDP checksum of 0 means that there is no checksum (RFC 768).
  if (checksum == 0 && protocol_ == IPPROTO_UDP) checksum = 0xffff;
  put(offset, checksum);
  return true;
}

}  // namespace nagi::io
