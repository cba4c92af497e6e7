// SPDX-License-Identifier: Apache-2.0
//
// The style of a queue discipline: as in its RFC, or as in Linux, which changes the RFC's
// pseudocode. docs/links-and-impairments.md lists the differences.
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

/// Describe the key "style".
template <class Config>
constexpr ChoiceField<Config, Style> style_field() {
  return {"style", &Config::style, styles};
}

/// Describe the rule that `key` may be given only with the style `style`.
template <class Config, class Value>
constexpr OnlyWith<Config, Value, Style> only_with(Choice<Style> style, std::string_view key,
                                                   std::optional<Value> Config::* member) {
  return {key, member, "style", &Config::style, style.second, style.first};
}

}  // namespace nagi::model
