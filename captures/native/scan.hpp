// SPDX-License-Identifier: Apache-2.0
//
// Reads a capture into the engine of flows.hpp, and counts what the capture holds besides.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>

#include "native/capture_file.hpp"
#include "native/decode.hpp"
#include "native/flows.hpp"

namespace nagi::captures {

/// What a capture holds beside its connections.
struct Totals {
  std::int64_t packets = 0;
  std::int64_t bytes = 0;  // on the wire
  std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_ns = std::numeric_limits<std::int64_t>::min();
  // Packets stamped before the one in front of them, and by how much at most.
  std::int64_t packets_back = 0;
  std::int64_t max_back_ns = 0;
  std::int64_t previous_ns = std::numeric_limits<std::int64_t>::min();
  std::int64_t packets_without_time = 0;
  std::array<std::int64_t, unused_reasons> unused{};
  std::int64_t tcp = 0;
  std::int64_t udp = 0;
  std::map<What, std::int64_t> others;  // what the unused ones are
};

/// Gives up to `most` packets of a file to the engine; false when there are no more.
bool scan_some(CaptureFile& file, Decoder& decoder, Engine& engine, Totals& totals,
               std::int64_t most);

}  // namespace nagi::captures
