// SPDX-License-Identifier: Apache-2.0
//
// Datagrams that have a number and the time at which they were sent: 4 bytes that say what they
// are, then number and nanoseconds of CLOCK_REALTIME, 8 bytes each, big endian.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "ends.hpp"

namespace nagi::applications {

inline constexpr std::uint64_t min_datagram = 20;  // bytes
inline constexpr std::uint64_t max_datagram = 65507;
// G.711: 160 bytes every 20 ms, with RTP's header (RFC 3550, RFC 3551).
inline constexpr std::uint64_t voice_payload_bytes = 172;
inline constexpr std::uint64_t voice_packets_per_s = 50;
inline constexpr double voice_packet_ms = 20;

/// What a datagram begins with.
enum class Kind : std::uint32_t {
  data = 0x6e616769,
  probe = 0x6e616770,     ///< of a rate; see rate_probes.hpp
  question = 0x6e616771,  ///< what has come of a probe
};

/// A sender.
class Datagrams {
 public:
  Datagrams(io::Descriptor socket, std::uint64_t payload_bytes);
  /// Sends the next one of data.
  void send(Waiter& waiter) { send(Kind::data, sent_++, waiter); }
  /// Sends one; waits while the kernel takes none.
  void send(Kind kind, std::uint64_t number, Waiter& waiter);
  /// How many of data.
  [[nodiscard]] std::uint64_t sent() const { return sent_; }
  [[nodiscard]] std::uint64_t payload_bytes() const { return content_.size(); }
  /// Bytes of the IP packet that a datagram is.
  [[nodiscard]] std::uint64_t packet_bytes() const { return content_.size() + headers_; }
  [[nodiscard]] int socket() const { return socket_.get(); }

 private:
  io::Descriptor socket_;
  std::vector<unsigned char> content_;
  std::uint64_t headers_;  // bytes, of IP and UDP
  std::uint64_t sent_ = 0;
};

struct ReceivedDatagram {
  Kind kind;
  std::uint64_t number;
  std::int64_t sent_ns;      ///< by the sender's CLOCK_REALTIME
  std::int64_t received_ns;  ///< by this host's
  std::uint64_t bytes;       ///< of payload
  sockaddr_storage sender;
  socklen_t sender_length;
};

/// The next datagram of ours that has come, as the kernel stamped it; none if there is none.
std::optional<ReceivedDatagram> receive_datagram(int socket);

}  // namespace nagi::applications
