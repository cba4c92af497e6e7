// SPDX-License-Identifier: Apache-2.0
//
// Datagrams with a number and the time at which they were sent: 4 bytes for the kind, then the
// number and the nanoseconds of CLOCK_REALTIME, 8 bytes each, big endian.
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

/// The kind of a datagram: its first 4 bytes.
enum class Kind : std::uint32_t {
  data = 0x6e616769,
  probe = 0x6e616770,     ///< part of a probe of a rate; see rate_probes.hpp
  question = 0x6e616771,  ///< asks how many packets of a probe arrived
};

/// A sender of datagrams.
class Datagrams {
 public:
  Datagrams(io::Descriptor socket, std::uint64_t payload_bytes);
  /// Send the next datagram of data.
  void send(Waiter& waiter) { send(Kind::data, sent_++, waiter); }
  /// Send a datagram. Wait while the kernel accepts none.
  void send(Kind kind, std::uint64_t number, Waiter& waiter);
  /// Return the number of datagrams of data that were sent.
  [[nodiscard]] std::uint64_t sent() const { return sent_; }
  [[nodiscard]] std::uint64_t payload_bytes() const { return content_.size(); }
  /// Return the size of the IP packet of a datagram.
  [[nodiscard]] std::uint64_t packet_bytes() const { return content_.size() + headers_; }
  [[nodiscard]] int socket() const { return socket_.get(); }

 private:
  io::Descriptor socket_;
  std::vector<unsigned char> content_;
  std::uint64_t headers_;  // length of the IP and UDP headers
  std::uint64_t sent_ = 0;
};

struct ReceivedDatagram {
  Kind kind;
  std::uint64_t number;
  std::int64_t sent_ns;      ///< CLOCK_REALTIME of the sender
  std::int64_t received_ns;  ///< CLOCK_REALTIME of this host
  std::uint64_t bytes;       ///< length of the payload
  sockaddr_storage sender;
  socklen_t sender_length;
};

/// Return the next waiting datagram with its arrival time by the kernel, or nothing if none waits.
/// Datagrams of other formats are discarded.
std::optional<ReceivedDatagram> receive_datagram(int socket);

}  // namespace nagi::applications
