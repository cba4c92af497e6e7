// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/units.hpp"

namespace nagi::model {

/// Running totals of one direction.
struct DirectionCounters {
  std::uint64_t offered = 0;
  std::uint64_t delivered = 0;  // without copies
  std::uint64_t queue_overflows = 0;
  std::uint64_t aqm_drops = 0;
  std::uint64_t channel_losses = 0;
  std::uint64_t marked = 0;      // by the model (ECN)
  std::uint64_t corrupted = 0;   // delivered with changed bits
  std::uint64_t duplicated = 0;  // copies delivered
  std::uint64_t reordered = 0;   // delivered after being held back by the effect `reordering`
  Bytes offered_bytes;
  Bytes delivered_bytes;
  std::uint64_t transmitted = 0;  // packets that the rate server has sent, including lost ones
  Bytes transmitted_bytes;        // bytes of these packets, including the overhead
  Duration transmitting{};        // time that the rate server spent on these packets
  std::uint64_t max_waiting = 0;  // largest number of waiting packets
};

}  // namespace nagi::model
