// SPDX-License-Identifier: Apache-2.0
//
// JSON text from anybody: what is no JSON, and what is nested so deeply that it would take all of
// the memory or of the stack, is refused in words of ours.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace nagi {

/// Levels of objects and lists. Configurations and control messages have less than ten.
constexpr std::size_t max_nesting = 64;

/// What is wrong with a JSON text; what would be right.
class JsonTextError : public std::runtime_error {
 public:
  JsonTextError(int line, const std::string& what) : std::runtime_error(what), line_(line) {}
  /// Counted from 1.
  [[nodiscard]] int line() const { return line_; }

 private:
  int line_;
};

/// Calls `visit` with the place of each character of a JSON text that is not in a string, until it
/// returns false. Up to the first error of syntax, brackets and strings are what they look like.
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

/// Reads a JSON text. Of members with the same key the last one holds. Throws JsonTextError.
nlohmann::json parse_json(const std::string& text, std::size_t deepest = max_nesting);

}  // namespace nagi
