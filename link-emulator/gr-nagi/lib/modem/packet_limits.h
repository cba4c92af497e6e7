/* SPDX-License-Identifier: Apache-2.0 */
//
// What packet_mux and packet_demux share: how much they hand on at once, and their arguments'
// check.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

namespace gr::nagi {

/// PDUs handed to a chain of blocks and not yet back. GNU Radio has no back-pressure for messages,
/// so this bounds what waits there.
inline constexpr std::size_t max_in_flight = 16;

/// `value`, if it is between `least` and `most`; throws std::invalid_argument otherwise.
inline std::size_t in_range(const char* name, long value, long minimum, long maximum) {
  if (value < minimum || value > maximum) {
    throw std::invalid_argument(std::string(name) + " is " + std::to_string(value) + ", not " +
                                std::to_string(minimum) + " to " + std::to_string(maximum));
  }
  return static_cast<std::size_t>(value);
}

}  // namespace gr::nagi
