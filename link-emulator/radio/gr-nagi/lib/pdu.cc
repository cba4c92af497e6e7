/* SPDX-License-Identifier: Apache-2.0 */
#include "pdu.h"

namespace gr::nagi {

namespace {

[[noreturn]] void refuse(const char* who, const std::string& what) {
  throw std::invalid_argument(std::string(who) + ": " + what);
}

/// Return an integer from a PDU's dictionary. Integers from Python are long; integers from C++
/// blocks are uint64.
std::int64_t whole(const Pdu& pdu, const pmt::pmt_t& name, const char* who) {
  const pmt::pmt_t value = pmt::dict_ref(pdu.meta, name, pmt::PMT_NIL);
  if (pmt::is_integer(value)) return pmt::to_long(value);
  if (pmt::is_uint64(value)) return static_cast<std::int64_t>(pmt::to_uint64(value));
  refuse(who, "the dictionary of a PDU has no whole number \"" + pmt::symbol_to_string(name) + '"');
}

}  // namespace

Pdu open_pdu(const pmt::pmt_t& message, const char* who) {
  if (!pmt::is_pair(message) || !pmt::is_dict(pmt::car(message)) ||
      !pmt::is_uniform_vector(pmt::cdr(message))) {
    refuse(who, "a message is not a PDU (dictionary, vector)");
  }
  return {pmt::car(message), pmt::cdr(message)};
}

std::span<const std::uint8_t> bytes_of(const Pdu& pdu, const char* who) {
  if (!pmt::is_u8vector(pdu.data)) refuse(who, "a PDU does not contain bytes");
  std::size_t length = 0;
  const std::uint8_t* first = pmt::u8vector_elements(pdu.data, length);
  return {first, length};
}

std::span<const gr_complex> samples_of(const Pdu& pdu, const char* who) {
  if (!pmt::is_c32vector(pdu.data)) refuse(who, "a PDU does not contain complex samples");
  std::size_t length = 0;
  const gr_complex* first = pmt::c32vector_elements(pdu.data, length);
  return {first, length};
}

pmt::pmt_t make_burst(const pmt::pmt_t& meta, std::span<const gr_complex> samples) {
  return pmt::cons(meta, pmt::init_c32vector(samples.size(), samples.data()));
}

pmt::pmt_t make_pdu(const pmt::pmt_t& meta, std::span<const std::uint8_t> bytes) {
  return pmt::cons(meta, pmt::init_u8vector(bytes.size(), bytes.data()));
}

std::uint64_t number_of(const Pdu& pdu, const char* who) {
  return static_cast<std::uint64_t>(whole(pdu, key::number(), who));
}

std::int64_t begin_of(const Pdu& pdu, const char* who) { return whole(pdu, key::begin_ns(), who); }

std::size_t mode_of(const Pdu& pdu, std::size_t modes, const char* who) {
  if (!pmt::dict_has_key(pdu.meta, key::mode())) return 0;
  const std::int64_t mode = whole(pdu, key::mode(), who);
  if (mode < 0 || static_cast<std::size_t>(mode) >= modes) {
    refuse(who, "mode " + std::to_string(mode) + ", not one of 0 to " + std::to_string(modes - 1));
  }
  return static_cast<std::size_t>(mode);
}

std::optional<Outcome> outcome_of(const Pdu& pdu, const char* who) {
  if (pmt::dict_has_key(pdu.meta, key::fate())) {
    const std::int64_t code = whole(pdu, key::fate(), who);
    for (const Outcome fate : {Outcome::receiver_busy, Outcome::not_sent, Outcome::not_received}) {
      if (code == static_cast<std::int64_t>(fate)) return fate;
    }
    refuse(who, "fate " + std::to_string(code) + ", not one of 8, 11 and 12");
  }
  if (!pmt::dict_has_key(pdu.meta, key::outcome())) return std::nullopt;
  const std::int64_t code = whole(pdu, key::outcome(), who);
  if (code < 0 || code > 3) refuse(who, "outcome " + std::to_string(code) + ", not one of 0 to 3");
  return Outcome{code};
}

}  // namespace gr::nagi
