/* SPDX-License-Identifier: Apache-2.0 */
//
// What packet_mux and packet_demux share: how much they hand on at once, and their arguments'
// check.
#pragma once

#include <gnuradio/prefs.h>

#include <cstddef>
#include <stdexcept>
#include <string>

namespace gr::nagi {

/// PDUs handed to a chain of blocks and not yet back. GNU Radio has no back-pressure for messages,
/// so this bounds what waits there.
inline constexpr std::size_t max_in_flight = 16;

/// GNU Radio drops messages of a port without a handler, such as pdu_to_tagged_stream's, if it
/// holds more than max_messages. It reads how many without a lock: once in some 10,000 bursts it
/// saw far too many, and a burst never came out. -1 is no limit, for all flowgraphs that start
/// afterwards.
inline void lose_no_messages() { gr::prefs::singleton()->set_long("DEFAULT", "max_messages", -1); }

/// `value`, if it is between `least` and `most`; throws std::invalid_argument otherwise.
inline std::size_t in_range(const char* name, long value, long minimum, long maximum) {
  if (value < minimum || value > maximum) {
    throw std::invalid_argument(std::string(name) + " is " + std::to_string(value) + ", not " +
                                std::to_string(minimum) + " to " + std::to_string(maximum));
  }
  return static_cast<std::size_t>(value);
}

}  // namespace gr::nagi
