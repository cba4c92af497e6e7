// SPDX-License-Identifier: Apache-2.0
//
// Passes the packets of a capture to the engine of flows.hpp, and counts the packets that belong to
// no connection.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>

#include "native/capture_file.hpp"
#include "native/decode.hpp"
#include "native/flows.hpp"

namespace nagi::captures {

/// Counts over all packets of a capture.
struct Totals {
  std::int64_t packets = 0;
  std::int64_t bytes = 0;  // on the wire
  std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_ns = std::numeric_limits<std::int64_t>::min();
  // Packets with a time before the time of the previous packet, and the largest such difference.
  std::int64_t packets_back = 0;
  std::int64_t max_back_ns = 0;
  std::int64_t previous_ns = std::numeric_limits<std::int64_t>::min();
  std::int64_t packets_without_time = 0;
  std::array<std::int64_t, unused_reasons> unused{};
  std::int64_t tcp = 0;
  std::int64_t udp = 0;
  std::map<LastHeader, std::int64_t> other_protocols;  // protocols of the unused packets
};

/// Pass up to `max_packets` packets of a file to the engine. Return false at the end of the file.
bool scan_some(CaptureFile& file, Decoder& decoder, Engine& engine, Totals& totals,
               std::int64_t max_packets);

}  // namespace nagi::captures
