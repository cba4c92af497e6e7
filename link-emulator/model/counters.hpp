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
  std::uint64_t marked = 0;
  std::uint64_t corrupted = 0;   // of those delivered
  std::uint64_t duplicated = 0;  // copies delivered
  std::uint64_t reordered = 0;   // held back on purpose, of those delivered
  Bytes offered_bytes;
  Bytes delivered_bytes;
  std::uint64_t transmitted = 0;  // packets the rate server has sent, lost at egress or not
  Bytes transmitted_bytes;        // their bytes, overhead included
  Duration transmitting{};        // time the rate server was busy sending them
  std::uint64_t max_waiting = 0;  // packets
};

}  // namespace nagi::model
