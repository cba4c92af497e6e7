// SPDX-License-Identifier: Apache-2.0
//
// Packets, transmissions and departures in the link model.
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
  std::uint64_t tag = 0;   // identifies the packet to the caller
  Ecn ecn = Ecn::not_ect;  // ECN field at arrival
  std::uint32_t flow = 0;  // hash of addresses, ports and protocol, for fair queueing
  std::optional<std::uint32_t> next_hop = std::nullopt;  // destination station, on a medium
  bool marked = false;                                   // set by the model: Congestion Experienced
  bool corrupted = false;                                // set by the model: bits have changed

  [[nodiscard]] bool may_be_marked() const { return ecn == Ecn::ect0 || ecn == Ecn::ect1; }
};

/// The ways in which a packet leaves the model. `retry_limit` means that a station of a medium gave
/// the packet up.
enum class Fate : std::uint8_t { delivered, queue_overflow, channel_loss, aqm_drop, retry_limit };

/// A packet that leaves the model, with the instant of its delivery or drop.
struct Departure {
  Packet packet;
  Fate fate = Fate::delivered;
  Instant at;
  bool is_copy = false;  // true for a duplicate, which departs before the original
};

/// The value of an SNR that was not measured.
constexpr std::int16_t no_snr = std::numeric_limits<std::int16_t>::min();

/// A transmission of a packet during [start, end). With ARQ a packet may have several.
struct Transmission {
  Packet packet;
  std::uint64_t number = 0;  // number among all transmissions of the direction
  unsigned attempt = 1;      // number among the transmissions of the packet, from 1
  Instant start{};
  Instant end{};
  bool lost = false;          // valid once the outcome is resolved
  std::int16_t snr = no_snr;  // measured by a radio's receiver, 0.01 dB; valid like `lost`
  std::uint8_t mode = 0;      // mode of rate adaptation
  std::uint64_t order = 0;    // number of the packet, in the order of first attempts
};

}  // namespace nagi::model
