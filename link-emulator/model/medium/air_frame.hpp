// SPDX-License-Identifier: Apache-2.0
//
// Frames on the air of a medium, and what became of each at the station it was meant for.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/units.hpp"
#include "model/medium/reach.hpp"
#include "model/packet.hpp"

namespace nagi::model {

/// Where a packet goes that is for all that hear it.
constexpr StationIndex everybody = 0xFFFF'FFFF;
/// Where one goes that is for a station which is not on this medium.
constexpr StationIndex nobody = 0xFFFF'FFFE;

enum class FrameKind : std::uint8_t { rts = 1, cts = 2, data = 3, ack = 4 };

enum class FrameOutcome : std::uint8_t {
  received,
  channel_error,    // drawn by the loss model
  collided,         // with a frame of a station that its sender hears: both began in one slot
  hidden_terminal,  // with a frame of a station that its sender does not hear
  receiver_busy,    // the receiver was sending itself
  out_of_reach,
  not_answered,  // an RTS that was received where the air is reserved (NAV)
};
constexpr std::size_t frame_outcomes = 7;

struct AirFrame {
  FrameKind kind = FrameKind::data;
  StationIndex from = 0;
  StationIndex to = 0;
  Instant start{};
  Instant end{};
  Duration reserves{};       // after its end, for the rest of the exchange (its Duration field)
  std::uint64_t number = 0;  // counts the frames of its sender
  std::uint64_t packet = 0;  // counts the packets of the sender whose exchange this is; of CTS and
                             // ACK: of the other station
  unsigned attempt = 1;      // at that packet
  Packet data;               // of RTS and DATA: what is sent
  FrameOutcome outcome = FrameOutcome::out_of_reach;
};

}  // namespace nagi::model
