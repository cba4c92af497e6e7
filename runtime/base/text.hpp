// SPDX-License-Identifier: Apache-2.0
//
// Conversion of untrusted text for messages: on one line, without effect on a terminal, and short.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace nagi {

constexpr std::size_t max_shown = 60;  // maximum length of a value in a message, characters

/// Return `text` with escapes (\n, \u001b, \xff) for control characters, line separators, changes
/// of direction and bytes that are no UTF-8.
std::string printable(std::string_view text);
/// Return printable(text), cut after `maximum` characters; "..." then replaces the rest.
std::string shortened(std::string_view text, std::size_t maximum = max_shown);
/// Return whether printable() would change the text.
bool has_unprintable(std::string_view text);

/// Return the word of `candidates` that is most similar to `word`, or an empty text if none is
/// similar. Words are similar if one is the beginning of the other, or if they differ by a few
/// typing errors (a letter added, missing or changed, or two letters exchanged).
std::string nearest(std::string_view word, const std::vector<std::string_view>& candidates);

}  // namespace nagi
