/* SPDX-License-Identifier: Apache-2.0 */
//
// The PDUs that all blocks of this module exchange: a dictionary and a vector of bytes or samples.
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

/// The outcome of a transmission. The numbers are those of nagi-link.
enum class Outcome : long {
  received = 0,
  not_detected = 1,
  header_error = 2,
  payload_error = 3,
  // Only UHD devices have the outcomes below.
  receiver_busy = 8,  // half duplex: the receiver was transmitting
  not_sent = 11,      // the burst reached the device too late, or the device ran out of samples
  not_received = 12,  // samples of the burst are missing
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
/// Return the key for the outcome of a burst that no receiver has seen. Such a burst is empty.
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

/// Return the parts of a PDU. Throws std::invalid_argument, which names `who`, if `message` is not
/// a PDU.
Pdu open_pdu(const pmt::pmt_t& message, const char* who);

/// Return the bytes of a PDU. Throws std::invalid_argument if the PDU holds other data.
std::span<const std::uint8_t> bytes_of(const Pdu& pdu, const char* who);

/// Return the complex samples of a PDU. Throws std::invalid_argument if the PDU holds other data.
std::span<const gr_complex> samples_of(const Pdu& pdu, const char* who);

/// Return a PDU of bytes (make_pdu) or of complex samples (make_burst).
pmt::pmt_t make_pdu(const pmt::pmt_t& meta, std::span<const std::uint8_t> bytes);
pmt::pmt_t make_burst(const pmt::pmt_t& meta, std::span<const gr_complex> samples);

/// Return the number of a PDU among the transmissions of its direction. Throws
/// std::invalid_argument if the PDU has no number.
std::uint64_t number_of(const Pdu& pdu, const char* who);

/// Return the instant at which a transmission begins on the air, in ns of event time. Throws
/// std::invalid_argument if the PDU has no such instant.
std::int64_t begin_of(const Pdu& pdu, const char* who);

/// Return the mode (modulation or code rate) of a PDU, or 0 if the PDU has none. Throws
/// std::invalid_argument if the mode is not from 0 to `modes` - 1.
std::size_t mode_of(const Pdu& pdu, std::size_t modes, const char* who);

/// Return the fate of a PDU, else the outcome from its receiver, else nullopt. Throws
/// std::invalid_argument if the number is not an outcome.
std::optional<Outcome> outcome_of(const Pdu& pdu, const char* who);

}  // namespace gr::nagi
