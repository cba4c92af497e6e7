// SPDX-License-Identifier: Apache-2.0
//
// Configurations of impairments describe themselves: each has a name, and a function fields() that
// returns the key, the member and the bounds of each of its fields. Readers and writers of formats
// use these descriptions; see described_json.hpp.
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

/// A number within bounds. The member may be a number or one of the model's units.
template <class Config, class Value, class Number>
struct NumberField {
  std::string_view key;
  Value Config::* member;
  Bound<Number> bound;
  bool is_required;
};

/// A number of packets under one key, or a number of bytes under the other key.
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

/// A value with its name.
template <class Value>
using Choice = std::pair<std::string_view, Value>;

/// One of several values that have names.
template <class Config, class Value>
struct ChoiceField {
  std::string_view key;
  Value Config::* member;
  std::span<const Choice<Value>> choices;
};

/// Whole numbers in strictly increasing order, all less than the member `end`. Messages call this
/// member `end_name`.
template <class Config>
struct IncreasingField {
  std::string_view key;
  std::vector<std::uint64_t> Config::* member;
  std::uint64_t Config::* end;
  std::string_view end_name;
};

/// Numbers within bounds, in increasing order; equal neighbours are allowed.
template <class Config>
struct SortedField {
  std::string_view key;
  std::vector<double> Config::* member;
  Bound<double> bound;
};

/// A trace of numbers, under the keys "steps" and "period_ns".
template <class Config>
struct StepsField {
  Trace<double> Config::* member;
  Bound<double> bound;
};

/// A rule between two fields: `member` must not exceed `maximum`.
template <class Config, class Value>
struct NotAbove {
  std::string_view key;
  Value Config::* member;
  std::string_view maximum_key;
  Value Config::* maximum;
};

/// A rule between two fields: `member` may be given only if `choice` has the value
/// `required_value`.
template <class Config, class Value, class Chosen>
struct OnlyWith {
  std::string_view key;
  std::optional<Value> Config::* member;
  std::string_view choice_key;
  Chosen Config::* choice;
  Chosen required_value;
  std::string_view required_name;
};

/// Describe a number that must be given.
template <class Config, class Value, class Number>
constexpr NumberField<Config, Value, Number> required(std::string_view key, Value Config::* member,
                                                      Bound<Number> bound) {
  return {key, member, bound, true};
}

/// Describe a number that may be missing; the member then keeps its initial value.
template <class Config, class Value, class Number>
constexpr NumberField<Config, Value, Number> optional(std::string_view key, Value Config::* member,
                                                      Bound<Number> bound) {
  return {key, member, bound, false};
}

}  // namespace nagi::model
