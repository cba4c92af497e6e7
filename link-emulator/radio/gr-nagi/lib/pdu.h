/* SPDX-License-Identifier: Apache-2.0 */
//
// PDUs as all of these blocks exchange them: a dictionary and a vector of bytes or of samples.
#pragma once

#include <gnuradio/gr_complex.h>
#include <pmt/pmt.h>

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace gr::nagi {

/// What became of a transmission; the numbers are nagi-link's.
enum class Outcome : long {
  received = 0,
  not_detected = 1,
  header_error = 2,
  payload_error = 3,
  // Of devices alone.
  receiver_busy = 8,  // half duplex: the receiver transmitted itself
  not_sent = 11,      // the device had it too late, or ran out of samples
  not_received = 12,  // samples of it are missing
};

namespace key {
inline const pmt::pmt_t& number() {
  static const pmt::pmt_t symbol = pmt::mp("number");
  return symbol;
}
inline const pmt::pmt_t& begin_ns() {
  static const pmt::pmt_t symbol = pmt::mp("begin_ns");
  return symbol;
}
inline const pmt::pmt_t& outcome() {
  static const pmt::pmt_t symbol = pmt::mp("outcome");
  return symbol;
}
inline const pmt::pmt_t& snr_db() {
  static const pmt::pmt_t symbol = pmt::mp("snr_db");
  return symbol;
}
inline const pmt::pmt_t& mode() {
  static const pmt::pmt_t symbol = pmt::mp("mode");
  return symbol;
}
/// The outcome of a burst that no receiver has seen; an empty burst has it.
inline const pmt::pmt_t& fate() {
  static const pmt::pmt_t symbol = pmt::mp("fate");
  return symbol;
}
inline const pmt::pmt_t& soft_bits() {
  static const pmt::pmt_t symbol = pmt::mp("soft_bits");
  return symbol;
}
}  // namespace key

struct Pdu {
  pmt::pmt_t meta;
  pmt::pmt_t data;
};

/// The parts of a PDU. Throws std::invalid_argument, naming `who`, if `message` is none.
Pdu open_pdu(const pmt::pmt_t& message, const char* who);

/// Its bytes. Throws std::invalid_argument if it holds anything else.
std::span<const std::uint8_t> bytes_of(const Pdu& pdu, const char* who);

/// Its complex samples, likewise.
std::span<const gr_complex> samples_of(const Pdu& pdu, const char* who);

/// A PDU of bytes; of complex samples.
pmt::pmt_t make_pdu(const pmt::pmt_t& meta, std::span<const std::uint8_t> bytes);
pmt::pmt_t make_burst(const pmt::pmt_t& meta, std::span<const gr_complex> samples);

/// Its number among the transmissions of its direction; throws std::invalid_argument if it has
/// none.
std::uint64_t number_of(const Pdu& pdu, const char* who);

/// The instant it begins on the air, in ns of event time; throws if it has none.
std::int64_t begin_of(const Pdu& pdu, const char* who);

/// Which of `modes` (modulations, or code rates) it is sent in, 0 if it does not say. Throws
/// std::invalid_argument if there is no such mode.
std::size_t mode_of(const Pdu& pdu, std::size_t modes, const char* who);

/// What became of it, if it says so: its fate, else the receiver's outcome. Throws
/// std::invalid_argument if that is no outcome.
std::optional<Outcome> outcome_of(const Pdu& pdu, const char* who);

}  // namespace gr::nagi
