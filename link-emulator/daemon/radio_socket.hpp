// SPDX-License-Identifier: Apache-2.0
//
// The protocol between nagi-link and the process of a radio, for one direction of a link, over a
// SOCK_SEQPACKET socket. The radio's process modulates packets and demodulates the waveforms.
// nagi-link sends one message per transmission, and the process sends one answer per transmission
// in the same order. Numbers are little-endian:
//
//   message  uint32 number of the transmission, uint32 mode of rate adaptation (else 0),
//            int64 begin and int64 end (ns since the epoch), then the IP packet
//   answer   uint32 number, uint8 outcome, uint8 0, int16 signal-to-noise ratio at the receiver
//            (0.01 dB; -32768 if it was not measured); if the IP packet was received, it follows as
//            the receiver decoded it
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/descriptor.hpp"
#include "model/direction.hpp"

namespace nagi::daemon {

enum class Outcome : std::uint8_t {
  received,
  not_detected,   // the receiver found no preamble
  header_error,   // the header with length and modulation was wrong
  payload_error,  // the checksum was wrong
  unanswered,     // the radio did not report an outcome
  lost,           // lost by a loss model
  // Only on shared media; see model/medium/air_frame.hpp.
  collided,
  hidden_terminal,
  receiver_busy,
  out_of_reach,
  not_answered,
  // Only with radio hardware, which also reports receiver_busy (half duplex: the receiver
  // transmitted).
  not_sent,      // the device got the samples too late, or not all of them
  not_received,  // the receiver lost samples of the transmission
};
constexpr std::size_t outcomes = 13;
using model::no_snr;

/// A socket to the process of a radio.
class RadioSocket {
 public:
  struct Answer {
    std::uint32_t number = 0;
    Outcome outcome = Outcome::unanswered;
    std::int16_t snr = no_snr;
    std::span<const std::byte> packet;  // valid until the next receive()
  };

  /// Take over an inherited descriptor. `name` names the socket in errors. Throws InputError if the
  /// descriptor is not a SOCK_SEQPACKET socket.
  RadioSocket(int descriptor, std::string name);

  [[nodiscard]] int descriptor() const { return socket_.get(); }
  /// Send a transmission with its packet. Throws std::system_error if the other end has closed the
  /// socket or does not read.
  void send(const model::Transmission& transmission, std::span<const std::byte> packet);
  /// Return the next answer, or nothing if there is none yet. Throws std::system_error if the other
  /// end has closed the socket or violates the protocol.
  std::optional<Answer> receive();

 private:
  io::Descriptor socket_;
  std::string name_;
  std::vector<std::byte> buffer_;
};

}  // namespace nagi::daemon
