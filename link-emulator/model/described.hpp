// SPDX-License-Identifier: Apache-2.0
//
// How an impairment describes its configuration: a name, and fields() with a key, a member and
// bounds each. Readers and writers of any format follow from that; see described_json.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "model/bounds.hpp"
#include "model/trace.hpp"

namespace nagi::model {

/// A number within bounds. A member may be a number or one of the model's units.
template <class Config, class Value, class Number>
struct NumberField {
  std::string_view key;
  Value Config::* member;
  Bound<Number> bound;
  bool is_required;
};

/// A number of packets or of bytes, each under a key of its own.
template <class Config>
struct SizeField {
  std::string_view packets_key;
  std::string_view bytes_key;
  std::variant<Packets, Bytes> Config::* member;
  Bound<std::uint64_t> packets;
  Bound<std::uint64_t> bytes;
};

template <class Config>
struct FlagField {
  std::string_view key;
  bool Config::* member;
};

/// A name of a value.
template <class Value>
using Choice = std::pair<std::string_view, Value>;

/// One of several values that have names.
template <class Config, class Value>
struct ChoiceField {
  std::string_view key;
  Value Config::* member;
  std::span<const Choice<Value>> choices;
};

/// Whole numbers, each greater than the one before and less than another member.
template <class Config>
struct IncreasingField {
  std::string_view key;
  std::vector<std::uint64_t> Config::* member;
  std::uint64_t Config::* end;
  std::string_view end_name;
};

/// Numbers within bounds, none less than the one before.
template <class Config>
struct SortedField {
  std::string_view key;
  std::vector<double> Config::* member;
  Bound<double> bound;
};

/// A trace of numbers: "steps" and "period_ns".
template <class Config>
struct StepsField {
  Trace<double> Config::* member;
  Bound<double> bound;
};

/// A rule, and no key: one member is at most another.
template <class Config, class Value>
struct NotAbove {
  std::string_view key;
  Value Config::* member;
  std::string_view most_key;
  Value Config::* most;
};

/// A rule, and no key: a member may be given only if `choice` has the value `needed`.
template <class Config, class Value, class Chosen>
struct OnlyWith {
  std::string_view key;
  std::optional<Value> Config::* member;
  std::string_view choice_key;
  Chosen Config::* choice;
  Chosen needed;
  std::string_view needed_name;
};

template <class Config, class Value, class Number>
constexpr NumberField<Config, Value, Number> required(std::string_view key, Value Config::* member,
                                                      Bound<Number> bound) {
  return {key, member, bound, true};
}

/// Where it is missing, the member keeps its initial value.
template <class Config, class Value, class Number>
constexpr NumberField<Config, Value, Number> optional(std::string_view key, Value Config::* member,
                                                      Bound<Number> bound) {
  return {key, member, bound, false};
}

}  // namespace nagi::model
