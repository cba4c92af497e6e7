// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <utility>

namespace nagi {

namespace {

constexpr std::uint32_t no_character = 0xffffffff;

/// A character of UTF-8 text, and its bytes.
struct Character {
  std::uint32_t code;  // no_character for a byte that is not UTF-8
  std::string_view bytes;
};

/// Return the first character of a text that is not empty.
Character decode_first(std::string_view text) {
  const auto byte = [&text](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, text.substr(0, 1)};
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  // The smallest code for each number of bytes. Longer encodings of a code are not UTF-8.
  constexpr std::array<std::uint32_t, 5> minimum = {0, 0, 0x80, 0x800, 0x10000};
  if (lead < 0xc2 || lead > 0xf4 || length > text.size()) return {no_character, text.substr(0, 1)};
  std::uint32_t code = lead & (0xffU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {no_character, text.substr(0, 1)};
    code = code << 6 | (byte(i) & 0x3fU);
  }
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < minimum[length] || code > 0x10ffff || surrogate) {
    return {no_character, text.substr(0, 1)};
  }
  return {code, text.substr(0, length)};
}

bool is_printable(std::uint32_t code) {
  const bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
  const bool separator = code == 0x2028 || code == 0x2029;
  const bool direction = code == 0x061c || code == 0x200e || code == 0x200f ||
                         (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return code != no_character && !control && !separator && !direction;
}

std::string escape(const Character& character) {
  switch (character.code) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      break;
  }
  char text[8];
  const bool byte = character.code == no_character;
  std::snprintf(
      text, sizeof text, byte ? "\\x%02x" : "\\u%04x",
      byte ? static_cast<unsigned>(static_cast<std::uint8_t>(character.bytes[0])) : character.code);
  return text;
}

/// Return the number of typing errors that turn word `a` into word `b` (optimal string alignment).
std::size_t count_typing_errors(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row_before_that;
  std::vector<std::size_t> previous_row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) previous_row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::vector<std::size_t> row(b.size() + 1);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({previous_row[j] + 1, row[j - 1] + 1,
                         previous_row[j - 1] + static_cast<std::size_t>(a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], row_before_that[j - 2] + 1);
      }
    }
    row_before_that = std::exchange(previous_row, std::move(row));
  }
  return previous_row.back();
}

}  // namespace

std::string printable(std::string_view text) { return shortened(text, text.size()); }

std::string shortened(std::string_view text, std::size_t maximum) {
  std::string shown;
  for (std::size_t count = 0; !text.empty(); ++count) {
    if (count == maximum) return shown + "...";
    const Character character = decode_first(text);
    shown += is_printable(character.code) ? std::string(character.bytes) : escape(character);
    text.remove_prefix(character.bytes.size());
  }
  return shown;
}

bool has_unprintable(std::string_view text) {
  while (!text.empty()) {
    const Character character = decode_first(text);
    if (!is_printable(character.code)) return true;
    text.remove_prefix(character.bytes.size());
  }
  return false;
}

std::string nearest(std::string_view word, const std::vector<std::string_view>& candidates) {
  constexpr std::size_t min_beginning = 3;
  constexpr std::size_t longest = 100;  // longer words are not misspelt keys
  std::string_view best;
  std::size_t fewest = 0;
  if (word.size() > longest) return {};
  for (const std::string_view candidate : candidates) {
    const std::size_t errors = count_typing_errors(word, candidate);
    const std::size_t shorter = std::min(word.size(), candidate.size());
    const bool begins =
        shorter >= min_beginning && (word.starts_with(candidate) || candidate.starts_with(word));
    const bool near = errors <= std::max<std::size_t>(1, shorter / 3) && errors < shorter;
    if ((begins || near) && (best.empty() || errors < fewest)) {
      best = candidate;
      fewest = errors;
    }
  }
  return std::string(best);
}

}  // namespace nagi
