// SPDX-License-Identifier: Apache-2.0
//
// Parsing of untrusted JSON text. Errors have messages for users instead of those of the JSON
// library. The parser refuses deeply nested texts, which could exhaust memory or the stack.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace nagi {

/// The maximum number of levels of objects and lists. Configurations and control messages have less
/// than ten.
constexpr std::size_t max_nesting = 64;

/// An error in a JSON text, with its cure.
class JsonTextError : public std::runtime_error {
 public:
  JsonTextError(int line, const std::string& what) : std::runtime_error(what), line_(line) {}
  /// The line of the error, counted from 1.
  [[nodiscard]] int line() const { return line_; }

 private:
  int line_;
};

/// Call `visit` with the index of each character of a JSON text that is not in a string, until
/// `visit` returns false. The indices are correct up to the first syntax error.
template <class Visit>
void for_each_outside_strings(const std::string& text, Visit visit) {
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      in_string = !in_string;
    } else if (in_string) {
      if (text[i] == '\\') ++i;
    } else if (!visit(i)) {
      return;
    }
  }
}

/// Parse a JSON text with at most `max_levels` levels of objects and lists. If a key occurs twice,
/// the result has the last value. Throws JsonTextError.
nlohmann::json parse_json(const std::string& text, std::size_t max_levels = max_nesting);

}  // namespace nagi
