// SPDX-License-Identifier: Apache-2.0
//
// The radio's process, for one direction of a link: it makes waveforms of packets and packets of
// these again, at the other end of a SOCK_SEQPACKET socket. One message a transmission there, one
// answer a transmission back, in the same order; little-endian:
//
//   there   uint32 number of the transmission, uint32 mode (of rate adaptation; else 0), int64
//           begin, int64 end (ns since the epoch), then the IP packet
//   back    uint32 number, uint8 outcome, uint8 0, int16 signal-to-noise ratio as the receiver saw
//           it (0.01 dB; -32768: it did not), then the IP packet as it was received, if it was
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
  not_detected,   // no preamble was found
  header_error,   // what says how long the packet is, and how it is modulated, was not understood
  payload_error,  // the checksum does not fit
  unanswered,     // nobody said
  lost,           // drawn by a loss model
  // On a shared medium alone; see model/medium/air_frame.hpp.
  collided,
  hidden_terminal,
  receiver_busy,
  out_of_reach,
  not_answered,
  // Of radio hardware, as receiver_busy (half duplex: the receiver transmitted itself).
  not_sent,      // the device had it too late, or ran out of samples
  not_received,  // samples of it are missing
};
constexpr std::size_t outcomes = 13;
using model::no_snr;

class RadioSocket {
 public:
  struct Answer {
    std::uint32_t number = 0;
    Outcome outcome = Outcome::unanswered;
    std::int16_t snr = no_snr;
    std::span<const std::byte> packet;  // valid until the next receive()
  };

  /// `descriptor`: inherited, and closed with this. `name`: what errors call it. Throws InputError
  /// if it is no such socket.
  RadioSocket(int descriptor, std::string name);

  [[nodiscard]] int descriptor() const { return socket_.get(); }
  /// Throws std::system_error if the other end is gone or does not read.
  void send(const model::Transmission& sending, std::span<const std::byte> packet);
  /// The next answer; nothing if there is none yet. Throws std::system_error if the other end is
  /// gone, or does not keep to what is said above.
  std::optional<Answer> receive();

 private:
  io::Descriptor socket_;
  std::string name_;
  std::vector<std::byte> buffer_;
};

}  // namespace nagi::daemon
