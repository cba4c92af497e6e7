// SPDX-License-Identifier: Apache-2.0
//
// Text that others wrote, as messages show it: on one line, without effect on a terminal, not long.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace nagi {

constexpr std::size_t max_shown = 60;  // characters of a value in a message

/// `text` with control characters, line separators, changes of direction and bytes that are no
/// UTF-8 as escapes: \n, \u001b, \xff.
std::string printable(std::string_view text);
/// The same, and "..." for what is beyond `most` characters.
std::string shortened(std::string_view text, std::size_t maximum = max_shown);
/// Whether printable() would change it.
bool has_unprintable(std::string_view text);

/// The word of `known` that `word` may have been meant for: the other's beginning, or a few typing
/// errors apart (a letter added, left out, changed, or two exchanged). Empty if there is none.
std::string nearest(std::string_view word, const std::vector<std::string_view>& known);

}  // namespace nagi
