// SPDX-License-Identifier: Apache-2.0
//
// Converts values of operations between JSON and the types of Control. The read_* functions throw
// ConfigError if a value is missing or wrong.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/object_reader.hpp"
#include "program/control.hpp"

namespace nagi::p4 {

constexpr std::size_t max_digits = 4096;

/// Return a number as big-endian bytes without leading zeros, but with at least one byte.
Bytes big_endian_bytes(std::uint64_t number);

/// Convert hexadecimal digits without "0x" to bytes. Return nothing if `digits` is empty, too long
/// or has other characters.
std::optional<Bytes> parse_hexadecimal(std::string_view digits,
                                       std::size_t max_length = max_digits);

/// Convert "0x...", or an Ethernet, IPv4 or IPv6 address, to bytes. Return nothing for other texts.
std::optional<Bytes> parse_number(const std::string& text);

/// Return whether a value is an integer >= 0.
bool is_natural(const nlohmann::json& value);

/// Read a number. `where` is a function that returns the position of the value for errors, because
/// computing the position takes longer than reading the number.
template <class Where>
Bytes read_number(const nlohmann::json& value, const Where& where) {
  if (is_natural(value)) return big_endian_bytes(value.get<std::uint64_t>());
  if (value.is_boolean()) return big_endian_bytes(value.get<bool>() ? 1 : 0);
  if (value.is_string()) {
    if (auto bytes = parse_number(value.get_ref<const std::string&>())) return *bytes;
  }
  throw ConfigError(where(), "no number: " + shown(value),
                    R"(write an integer from 0 on, "0x...", or an address: "10.0.0.1", )"
                    R"("2001:db8::1", "02:00:00:00:00:01")");
}

std::uint32_t read_32_bits(const ObjectReader& reader, const std::string& key);

std::optional<std::uint32_t> read_optional_32_bits(const ObjectReader& reader,
                                                   const std::string& key);

std::vector<Match> read_match(ObjectReader& reader);

ActionCall read_call(ObjectReader& reader);

Target read_target(ObjectReader& reader);

std::optional<std::int32_t> read_priority(ObjectReader& reader);

/// Return the handle of the entry that a request names by "handle", or by "match" and "priority".
/// Throws InputError if there is no entry with this key.
Handle read_entry(const Control& control, const std::string& table, ObjectReader& reader);

/// Return "timeout_us" of a request, or nothing if it is missing.
std::optional<std::uint64_t> read_timeout(ObjectReader& reader);

/// Add "action" and "data" to an answer.
void add_call(nlohmann::json& answer, const ActionCall& call);

/// Add "action" and "data", or "member", or "group" to an answer.
void add_target(nlohmann::json& answer, const Target& target);

nlohmann::json rates_to_json(const std::vector<MeterRate>& rates);

/// Read the packet in "bytes", which has two hexadecimal digits per byte.
std::vector<std::uint8_t> read_packet(const ObjectReader& reader);
/// Convert bytes to two hexadecimal digits each.
std::string to_hexadecimal(const std::vector<std::uint8_t>& bytes);

/// Convert an entry to the form that table_read returns.
nlohmann::json entry_to_json(const Entry& entry);

/// Convert a number to JSON: an integer, or "0x..." if it has more than 64 bits.
nlohmann::json number_to_json(const std::vector<std::uint8_t>& big_endian);

}  // namespace nagi::p4
