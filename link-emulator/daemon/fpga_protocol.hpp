// SPDX-License-Identifier: Apache-2.0
//
// The protocol between nagi-link and nagi-fpga, the process that runs the core of a link's FPGA,
// over a SOCK_STREAM socket. nagi-link sends one request at a time and waits for its answer. A
// message is a header followed by `bytes` bytes; all numbers are little-endian.
//
//   configure   JSON: {"version": "0.1.0", "protocol": 1, "link": 1, "seed": 2008,
//                      "forward": {...}, "backward": {...}}, directions as in direction_json.hpp.
//               Answer: JSON {"build_id": ..., "tick_ns": 8, "longest_frame": 1536}
//   advance     AdvanceHead, then `arrivals` times ArrivalHead and a frame: advance the core to an
//               instant. Arrivals lie on ticks, not after that instant, in the order of time.
//               Answer: AdvancedHead, then `departures` times DepartureHead, followed by the frame
//               if the packet was delivered. Departures stand in the order of time.
//   count       no content. Answer: CountsOf for both directions
//
// Instead of an answer, nagi-fpga may send `refused` with an error message as text. It ends
// afterwards.
#pragma once

#include <array>
#include <cstdint>

#include "base/units.hpp"

namespace nagi::daemon::fpga {

constexpr int protocol_version = 1;
constexpr std::int64_t tick_ns = 8;
constexpr std::uint32_t max_message_bytes = 1U << 28;

enum class Kind : std::uint32_t { configure = 1, advance = 2, count = 3, refused = 4 };

struct Header {
  Kind kind = Kind::refused;
  std::uint32_t bytes = 0;  // bytes that follow the header
};

struct AdvanceHead {
  std::int64_t to_ns = 0;
  std::uint32_t arrivals = 0;
  std::uint32_t reserved = 0;
};

struct ArrivalHead {
  std::int64_t at_ns = 0;
  std::uint16_t length = 0;  // length of the frame without FCS
  std::uint8_t direction = 0;
  std::array<std::uint8_t, 5> reserved{};
};

constexpr std::int64_t never = INT64_MAX;

struct AdvancedHead {
  std::int64_t next_ns = never;  // time of the core's next event if no packet arrives
  std::uint32_t departures = 0;
  std::uint32_t reserved = 0;
};

/// A packet that has left the core, from the core's record.
struct DepartureHead {
  std::int64_t arrived_ns = 0;
  std::int64_t left_ns = 0;
  std::uint32_t index = 0;
  std::uint32_t identity = 0;
  std::uint32_t late_ns = 0;  // time from `left_ns` until the packet left the core
  std::uint16_t ip_bytes = 0;
  std::uint16_t length = 0;  // length of the frame that follows, or 0 if none follows
  std::uint8_t direction = 0;
  std::uint8_t fate = 0;  // code as in packet_record.hpp
  std::uint8_t ecn = 0;
  std::uint8_t marked = 0;
  std::array<std::uint8_t, 4> reserved{};
};

/// The counters of one direction; see the registers of the core.
struct CountsOf {
  std::uint64_t offered = 0;
  std::uint64_t offered_bytes = 0;
  std::uint64_t delivered = 0;
  std::uint64_t delivered_bytes = 0;
  std::uint64_t queue_overflows = 0;
  std::uint64_t channel_losses = 0;
  std::uint64_t marked = 0;
  std::uint64_t transmitted = 0;
  std::uint64_t transmitted_bytes = 0;
  std::uint64_t transmitting_ns = 0;
  std::uint64_t max_waiting = 0;
  std::uint64_t memory_overflows = 0;
  std::uint64_t late_releases = 0;
  std::uint64_t max_late_ns = 0;
};

static_assert(sizeof(Header) == 8 && sizeof(AdvanceHead) == 16 && sizeof(ArrivalHead) == 16);
static_assert(sizeof(AdvancedHead) == 16 && sizeof(DepartureHead) == 40 && sizeof(CountsOf) == 112);

/// Return the first tick at or after an instant.
inline Instant next_tick(Instant at) {
  const std::int64_t ns = at.time_since_epoch().count();
  return at + Duration{(tick_ns - ns % tick_ns) % tick_ns};
}

}  // namespace nagi::daemon::fpga
