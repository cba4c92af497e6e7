// SPDX-License-Identifier: Apache-2.0
//
// What the model knows of packets, and what becomes of them.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "base/units.hpp"

namespace nagi::model {

/// The ECN field (RFC 3168, section 5; RFC 9331).
enum class Ecn : std::uint8_t { not_ect = 0, ect1 = 1, ect0 = 2, ce = 3 };

struct Packet {
  Bytes size;
  std::uint64_t tag = 0;   // the caller's name for it
  Ecn ecn = Ecn::not_ect;  // as it came
  std::uint32_t flow = 0;  // a hash of addresses, ports and protocol, for fair queueing
  std::optional<std::uint32_t> next_hop = std::nullopt;  // on a medium: the station that it is for
  bool marked = false;                                   // set by the model: Congestion Experienced
  bool corrupted = false;  // set by the model: bits changed on the way

  [[nodiscard]] bool may_be_marked() const { return ecn == Ecn::ect0 || ecn == Ecn::ect1; }
};

/// retry_limit: given up by a station of a medium.
enum class Fate : std::uint8_t { delivered, queue_overflow, channel_loss, aqm_drop, retry_limit };

/// A packet leaving the model: at its delivery, or where and when it was dropped.
struct Departure {
  Packet packet;
  Fate fate = Fate::delivered;
  Instant at;
  bool is_copy = false;  // a duplicate; the packet itself departs after it
};

constexpr std::int16_t no_snr = std::numeric_limits<std::int16_t>::min();

/// A packet on the medium during [start, end): one of several attempts, with ARQ.
struct Transmission {
  Packet packet;
  std::uint64_t number = 0;  // counts the transmissions
  unsigned attempt = 1;
  Instant start{};
  Instant end{};
  bool lost = false;          // once that is resolved
  std::int16_t snr = no_snr;  // 0.01 dB, as the receiver of a radio measured it, likewise
  std::uint8_t mode = 0;      // with rate adaptation: in which it is sent
  std::uint64_t order = 0;    // counts the packets, by their first attempts
};

}  // namespace nagi::model
