// SPDX-License-Identifier: Apache-2.0
#include "switch/daemon/operation_values.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace nagi::p4 {

using nlohmann::json;

namespace {

constexpr std::uint64_t max_32_bits = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t max_bits = 4096;  // maximum length of a prefix, longer than any field

std::optional<Bytes> ethernet_address(std::string_view text) {
  constexpr std::size_t length = 17;
  if (text.size() != length) return std::nullopt;
  Bytes bytes;
  for (std::size_t at = 0; at < length; at += 3) {
    const auto byte = parse_hexadecimal(text.substr(at, 2));
    if (!byte || byte->size() != 1 || (at + 2 < length && text[at + 2] != ':')) return std::nullopt;
    bytes.push_back(byte->front());
  }
  return bytes;
}

std::optional<Bytes> ip_address(const std::string& text) {
  std::array<std::uint8_t, 16> bytes{};
  if (inet_pton(AF_INET, text.c_str(), bytes.data()) == 1) {
    return Bytes(bytes.begin(), bytes.begin() + 4);
  }
  if (inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1) {
    return Bytes(bytes.begin(), bytes.end());
  }
  return std::nullopt;
}

template <class Where>
Match match_text(const std::string& text, const json& value, const Where& where) {
  const auto slash = text.find('/');
  if (slash == std::string::npos) return Exact{read_number(value, where)};
  const auto bytes = parse_number(text.substr(0, slash));
  std::uint32_t length = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data() + slash + 1, end, length);
  if (!bytes || read.ec != std::errc() || read.ptr != end || length > max_bits) {
    throw ConfigError(where(), "no prefix: " + shown(text), R"(write it as "10.0.0.0/8")");
  }
  return Prefix{*bytes, length};
}

Match match_object(ObjectReader reader) {
  reader.only({"value", "prefix", "mask", "low", "high"});
  const auto at = [&](const char* key) {
    return read_number(reader.any(key), [&] { return reader.at(key); });
  };
  if (reader.has("low") || reader.has("high")) {
    reader.only({"low", "high"});
    return Range{at("low"), at("high")};
  }
  if (reader.has("prefix")) {
    reader.only({"value", "prefix"});
    return Prefix{at("value"), static_cast<std::uint32_t>(reader.whole("prefix", 0, max_bits))};
  }
  if (reader.has("mask")) return Ternary{at("value"), at("mask")};
  return Exact{at("value")};
}

json match_to_json(const Match& match) {
  if (const auto* exact = std::get_if<Exact>(&match)) return number_to_json(exact->value);
  if (const auto* prefix = std::get_if<Prefix>(&match)) {
    return {{"value", number_to_json(prefix->value)}, {"prefix", prefix->length}};
  }
  if (const auto* ternary = std::get_if<Ternary>(&match)) {
    return {{"value", number_to_json(ternary->value)}, {"mask", number_to_json(ternary->mask)}};
  }
  if (const auto* range = std::get_if<Range>(&match)) {
    return {{"low", number_to_json(range->low)}, {"high", number_to_json(range->high)}};
  }
  return nullptr;
}

}  // namespace

Bytes big_endian_bytes(std::uint64_t number) {
  Bytes bytes;
  for (int shift = 56; shift >= 0; shift -= 8) {
    const auto byte = static_cast<std::uint8_t>(number >> shift);
    if (byte != 0 || !bytes.empty() || shift == 0) bytes.push_back(byte);
  }
  return bytes;
}

std::optional<Bytes> parse_hexadecimal(std::string_view digits, std::size_t max_length) {
  if (digits.empty() || digits.size() > max_length) return std::nullopt;
  Bytes bytes;
  // If the number of digits is odd, the first digit alone makes a byte.
  for (std::size_t at = 0; at < digits.size();) {
    const std::size_t length = (digits.size() - at) % 2 == 0 ? 2 : 1;
    std::uint8_t byte = 0;
    const char* end = digits.data() + at + length;
    const auto read = std::from_chars(digits.data() + at, end, byte, 16);
    if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
    bytes.push_back(byte);
    at += length;
  }
  return bytes;
}

std::optional<Bytes> parse_number(const std::string& text) {
  if (text.starts_with("0x") || text.starts_with("0X")) {
    return parse_hexadecimal(std::string_view(text).substr(2));
  }
  if (auto address = ethernet_address(text)) return address;
  return ip_address(text);
}

bool is_natural(const json& value) {
  return value.is_number_unsigned() ||
         (value.is_number_integer() && value.get<std::int64_t>() >= 0);
}

std::uint32_t read_32_bits(const ObjectReader& reader, const std::string& key) {
  return static_cast<std::uint32_t>(reader.whole(key, 0, max_32_bits));
}

std::optional<std::uint32_t> read_optional_32_bits(const ObjectReader& reader,
                                                   const std::string& key) {
  if (!reader.has(key)) return std::nullopt;
  return read_32_bits(reader, key);
}

std::vector<Match> read_match(ObjectReader& reader) {
  std::vector<Match> all;
  const json& list = reader.array("match");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const json& value = list[i];
    const auto where = [&] { return reader.at("match") / i; };
    if (value.is_null()) {
      all.emplace_back(Any{});
    } else if (value.is_object()) {
      all.push_back(match_object({value, where()}));
    } else if (value.is_string()) {
      all.push_back(match_text(value.get_ref<const std::string&>(), value, where));
    } else {
      all.emplace_back(Exact{read_number(value, where)});
    }
  }
  return all;
}

ActionCall read_call(ObjectReader& reader) {
  ActionCall call{reader.text("action"), {}};
  if (!reader.has("data")) return call;
  const json& data = reader.array("data");
  for (std::size_t i = 0; i < data.size(); ++i) {
    call.data.push_back(read_number(data[i], [&] { return reader.at("data") / i; }));
  }
  return call;
}

Target read_target(ObjectReader& reader) {
  const int target_count =
      int{reader.has("action")} + int{reader.has("member")} + int{reader.has("group")};
  if (target_count > 1) {
    throw ConfigError(reader.here(), "more than one of \"action\", \"member\" and \"group\"",
                      "give one of them");
  }
  if (reader.has("data") && !reader.has("action")) {
    throw ConfigError(reader.at("data"), "data without an action", "also give \"action\"");
  }
  if (reader.has("member")) return Member{read_32_bits(reader, "member")};
  if (reader.has("group")) return Group{read_32_bits(reader, "group")};
  return read_call(reader);
}

std::optional<std::int32_t> read_priority(ObjectReader& reader) {
  if (!reader.has("priority") || reader.any("priority").is_null()) return std::nullopt;
  return static_cast<std::int32_t>(
      reader.whole("priority", 0, std::numeric_limits<std::int32_t>::max()));
}

Handle read_entry(const Control& control, const std::string& table, ObjectReader& reader) {
  if (!reader.has("match")) return reader.whole("handle");
  if (reader.has("handle")) {
    throw ConfigError(reader.at("handle"), "an entry by handle and by key",
                      "give \"handle\" or \"match\"");
  }
  const std::vector<Match> match = read_match(reader);
  return control.table_find(table, match, read_priority(reader));
}

std::optional<std::uint64_t> read_timeout(ObjectReader& reader) {
  constexpr std::uint64_t max_timeout_us = 1ULL << 53;
  if (!reader.has("timeout_us")) return std::nullopt;
  return reader.whole("timeout_us", 0, max_timeout_us);
}

void add_call(json& answer, const ActionCall& call) {
  json data = json::array();
  for (const Bytes& value : call.data) data.push_back(number_to_json(value));
  answer["action"] = call.action;
  answer["data"] = std::move(data);
}

void add_target(json& answer, const Target& target) {
  if (const auto* call = std::get_if<ActionCall>(&target)) {
    add_call(answer, *call);
  } else if (const auto* member = std::get_if<Member>(&target)) {
    answer["member"] = member->number;
  } else {
    answer["group"] = std::get<Group>(target).number;
  }
}

json rates_to_json(const std::vector<MeterRate>& rates) {
  json all = json::array();
  for (const MeterRate& rate : rates) {
    all.push_back({{"per_us", rate.per_us}, {"burst", rate.burst}});
  }
  return all;
}

std::vector<std::uint8_t> read_packet(const ObjectReader& reader) {
  const json& value = reader.any("bytes");
  constexpr std::size_t max_digits_of_packet = 1 << 18;
  if (value.is_string()) {
    const std::string& digits = value.get_ref<const std::string&>();
    if (digits.empty()) return {};
    if (digits.size() % 2 == 0 && digits.size() <= max_digits_of_packet) {
      if (auto bytes = parse_hexadecimal(digits, max_digits_of_packet)) return *bytes;
    }
  }
  throw ConfigError(reader.at("bytes"), "no bytes: " + shown(value),
                    R"(write two hexadecimal digits per byte: "0a1b2c")");
}

std::string to_hexadecimal(const Bytes& bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::uint8_t byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

json entry_to_json(const Entry& entry) {
  json match = json::array();
  for (const Match& one : entry.match) match.push_back(match_to_json(one));
  json answer = {{"handle", entry.handle},
                 {"match", std::move(match)},
                 {"hits", entry.hits},
                 {"idle_us", entry.idle_us}};
  if (entry.priority) answer["priority"] = *entry.priority;
  add_target(answer, entry.target);
  if (entry.timeout_us) answer["timeout_us"] = *entry.timeout_us;
  if (entry.count) {
    answer["packets"] = entry.count->packets;
    answer["bytes"] = entry.count->bytes;
  }
  if (entry.rates) answer["rates"] = rates_to_json(*entry.rates);
  return answer;
}

json number_to_json(const Bytes& big_endian) {
  auto first = std::ranges::find_if(big_endian, [](std::uint8_t byte) { return byte != 0; });
  if (big_endian.end() - first > 8) {
    return "0x" + to_hexadecimal({first, big_endian.end()});
  }
  std::uint64_t value = 0;
  for (; first != big_endian.end(); ++first) value = value << 8 | *first;
  return value;
}

}  // namespace nagi::p4
