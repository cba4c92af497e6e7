// SPDX-License-Identifier: Apache-2.0
//
// Converts values of operations between JSON and the machine's types.
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

Bytes big_endian_bytes(std::uint64_t number);

std::optional<Bytes> parse_hexadecimal(std::string_view digits,
                                       std::size_t max_length = max_digits);

std::optional<Bytes> parse_number(const std::string& text);

bool is_natural(const nlohmann::json& value);

/// Read a number. `where` returns the position of the value for errors; computing it takes longer
/// than reading the number.
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

/// Return the entry that a request names, by handle or by key.
Handle read_entry(const Control& control, const std::string& table, ObjectReader& reader);

std::optional<std::uint64_t> read_timeout(ObjectReader& reader);

void add_call(nlohmann::json& answer, const ActionCall& call);

void add_target(nlohmann::json& answer, const Target& target);

nlohmann::json rates_to_json(const std::vector<MeterRate>& rates);

/// Read and write the bytes of a packet as "bytes": two hexadecimal digits per byte.
std::vector<std::uint8_t> read_packet(const ObjectReader& reader);
std::string to_hexadecimal(const std::vector<std::uint8_t>& bytes);

/// Return an entry in the form of table_read.
nlohmann::json entry_to_json(const Entry& entry);

/// Convert a number to JSON: an integer, or "0x..." if it has more than 64 bits.
nlohmann::json number_to_json(const std::vector<std::uint8_t>& big_endian);

}  // namespace nagi::p4
