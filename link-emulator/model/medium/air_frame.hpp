// SPDX-License-Identifier: Apache-2.0
//
// Frames on the air of a medium, and the outcome of each at the station to which it was addressed.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/units.hpp"
#include "model/medium/reach.hpp"
#include "model/packet.hpp"

namespace nagi::model {

/// The destination of a broadcast.
constexpr StationIndex everybody = 0xFFFF'FFFF;
/// The destination of a packet for a station that is not on this medium.
constexpr StationIndex nobody = 0xFFFF'FFFE;

enum class FrameKind : std::uint8_t { rts = 1, cts = 2, data = 3, ack = 4 };

enum class FrameOutcome : std::uint8_t {
  received,
  channel_error,    // lost by the loss model
  collided,         // disturbed by a station that the sender senses: both began in the same slot
  hidden_terminal,  // disturbed by a station that the sender does not sense
  receiver_busy,    // the receiver was transmitting
  out_of_reach,     // too weak at the receiver
  not_answered,     // an RTS that arrived while the receiver's NAV was set
};
constexpr std::size_t frame_outcomes = 7;

struct AirFrame {
  FrameKind kind = FrameKind::data;
  StationIndex from = 0;
  StationIndex to = 0;
  Instant start{};
  Instant end{};
  Duration reserves{};       // value of the Duration field: time reserved after the frame's end
  std::uint64_t number = 0;  // number among all frames of its sender
  // Number of the packet among all packets of the station that began the exchange. This station is
  // the sender of RTS and DATA, and the receiver of CTS and ACK.
  std::uint64_t packet = 0;
  unsigned attempt = 1;  // number among the attempts to send this packet, from 1
  Packet data;           // the packet of this exchange
  FrameOutcome outcome = FrameOutcome::out_of_reach;
};

}  // namespace nagi::model
