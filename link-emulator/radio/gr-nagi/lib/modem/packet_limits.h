/* SPDX-License-Identifier: Apache-2.0 */
//
// Code that packet_mux and packet_demux share: the limit of PDUs in flight, and a check of
// arguments.
#pragma once

#include <gnuradio/prefs.h>

#include <cstddef>
#include <stdexcept>
#include <string>

namespace gr::nagi {

/// The maximum number of PDUs that a chain of blocks holds at once. GNU Radio has no back-pressure
/// for messages, so this limit bounds the number of messages that wait in the chain.
inline constexpr std::size_t max_in_flight = 16;

/// Remove the limit on queued messages (max_messages = -1) for all flowgraphs that start
/// afterwards. GNU Radio drops messages of a port without a handler, such as the port of
/// pdu_to_tagged_stream, if the port holds more than max_messages. GNU Radio reads the number of
/// queued messages without a lock. About once in 10,000 bursts this number was far too high, and a
/// burst was lost.
inline void lose_no_messages() { gr::prefs::singleton()->set_long("DEFAULT", "max_messages", -1); }

/// Return `value` if it is from `minimum` to `maximum`. Throws std::invalid_argument otherwise.
inline std::size_t in_range(const char* name, long value, long minimum, long maximum) {
  if (value < minimum || value > maximum) {
    throw std::invalid_argument(std::string(name) + " is " + std::to_string(value) + ", not " +
                                std::to_string(minimum) + " to " + std::to_string(maximum));
  }
  return static_cast<std::size_t>(value);
}

}  // namespace gr::nagi
