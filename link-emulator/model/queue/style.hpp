// SPDX-License-Identifier: Apache-2.0
//
// Queue disciplines are defined by RFCs, whose pseudocode Linux follows with changes of its own.
// docs/links-and-impairments.md lists where the two differ.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "model/described.hpp"

namespace nagi::model {

enum class Style : std::uint8_t { as_linux, as_rfc };

inline constexpr Choice<Style> as_linux = {"linux", Style::as_linux};
inline constexpr Choice<Style> as_rfc = {"rfc", Style::as_rfc};
inline constexpr std::array<Choice<Style>, 2> styles = {as_linux, as_rfc};

/// The key that all disciplines with a style have.
template <class Config>
constexpr ChoiceField<Config, Style> style_field() {
  return {"style", &Config::style, styles};
}

/// The rule for a key that only one style knows.
template <class Config, class Value>
constexpr OnlyWith<Config, Value, Style> only_with(Choice<Style> style, std::string_view key,
                                                   std::optional<Value> Config::* member) {
  return {key, member, "style", &Config::style, style.second, style.first};
}

}  // namespace nagi::model
