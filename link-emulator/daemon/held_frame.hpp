// SPDX-License-Identifier: Apache-2.0
//
// A frame that the link model holds. The model identifies a packet by the slot of its frame. The
// other properties of the frame are in a note (HeldFrame), which lies in the slot in front of the
// frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/units.hpp"
#include "io/frame_pool.hpp"
#include "io/port.hpp"
#include "model/direction.hpp"

namespace nagi::daemon {

/// The note of a frame.
struct HeldFrame {
  Instant arrived;
  io::Frame frame;
  std::uint32_t index = 0;     // number of the packet in its direction, modulo 2^32
  std::uint32_t identity = 0;  // see io/ip_header.hpp; 0 if packets are not recorded
  std::int64_t late_ns = 0;    // on a medium: lateness of the last copy that was handed over
};

inline io::Slot slot_of(const model::Packet& packet) { return static_cast<io::Slot>(packet.tag); }

inline HeldFrame& held_frame(io::FramePool& pool, const model::Packet& packet) {
  return pool.note<HeldFrame>(slot_of(packet));
}

/// Return the bytes of a frame.
inline std::span<std::uint8_t> bytes_of(io::FramePool& pool, const io::Frame& frame) {
  return {pool.data(frame.slot) + frame.offset, frame.length};
}

/// Return the IP packet in a frame.
inline std::span<std::byte> ip_packet(io::FramePool& pool, const model::Packet& packet) {
  return std::as_writable_bytes(bytes_of(pool, held_frame(pool, packet).frame))
      .last(packet.size.count);
}

}  // namespace nagi::daemon
