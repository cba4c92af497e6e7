// SPDX-License-Identifier: Apache-2.0
#include "base/json_text.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/text.hpp"

namespace nagi {

namespace {

using nlohmann::json;

/// The position of a byte in a text, counted from 1; the column counts characters.
struct Position {
  int line;
  std::size_t column;
};

/// Return whether a byte is the first one of a character of UTF-8 text.
bool is_first_byte(char byte) { return (byte & 0xc0) != 0x80; }

Position find_position(const std::string& text, std::size_t byte) {
  const std::string_view before = std::string_view(text).substr(0, byte);
  const auto begin = before.rfind('\n') + 1;  // 0 without a line break
  return {static_cast<int>(1 + std::ranges::count(before, '\n')),
          1 + static_cast<std::size_t>(std::ranges::count_if(before.substr(begin), is_first_byte))};
}

/// Return the index of the first bracket that exceeds the maximum depth, if there is one. The
/// result may be wrong after a syntax error, but such a text is refused anyway.
std::optional<std::size_t> find_too_deep(const std::string& text, std::size_t max_levels) {
  std::size_t depth = 0;
  std::optional<std::size_t> bracket;
  for_each_outside_strings(text, [&](std::size_t at) {
    if (text[at] == '[' || text[at] == '{') {
      if (depth++ == max_levels) bracket = at;
    } else if ((text[at] == ']' || text[at] == '}') && depth > 0) {
      --depth;
    }
    return !bracket;
  });
  return bracket;
}

/// Stores the first syntax error: the number of bytes before the error, and the library's message.
class ErrorListener final : public nlohmann::json_sax<json> {
 public:
  std::size_t bytes = 0;
  std::string words;

  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return true; }
  bool string(string_t& /*value*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return true; }
  bool start_object(std::size_t /*size*/) override { return true; }
  bool key(string_t& /*key*/) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t /*size*/) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const json::exception& error) override {
    bytes = position;
    words = error.what();
    return false;
  }
};

/// Return the last characters of a text.
std::string last_characters(std::string_view text) {
  if (text.size() <= max_shown) return printable(text);
  text.remove_prefix(text.size() - max_shown);
  while (!text.empty() && !is_first_byte(text.front())) text.remove_prefix(1);
  return "..." + printable(text);
}

/// A syntax error and its cure, extracted from the library's message:
/// "[ID] parse error at line L, column C: syntax error while parsing CONTEXT - PROBLEM; last read:
/// 'TEXT'; expected TOKEN". TEXT and TOKEN may be missing.
struct Problem {
  std::string what;
  std::string cure;
};

Problem parse_problem(std::string_view words) {
  constexpr std::string_view read_mark = "; last read: '";
  constexpr std::string_view expected_mark = "; expected ";
  const auto skip = [&words](std::string_view mark) {
    const auto found = words.find(mark);
    if (found != std::string_view::npos) words.remove_prefix(found + mark.size());
  };
  skip("] ");
  if (words.starts_with("parse error at line ")) skip(": ");
  if (words.starts_with("syntax error while parsing ")) skip(" - ");

  Problem problem;
  const auto expected = words.rfind(expected_mark);
  const auto read = words.find(read_mark);
  if (expected != std::string_view::npos && (read == std::string_view::npos || expected > read)) {
    problem.cure = "expected " + shortened(words.substr(expected + expected_mark.size()));
    words = words.substr(0, expected);
  } else if (words.starts_with("number overflow")) {
    problem.cure = "write a smaller number";
  } else {
    problem.cure = "write names and texts in double quotes; RFC 8259 defines JSON";
  }
  if (read == std::string_view::npos) {
    problem.what = shortened(words, 2 * max_shown);
  } else {
    auto text = words.substr(read + read_mark.size());
    if (text.ends_with('\'')) text.remove_suffix(1);
    problem.what = shortened(words.substr(0, read), 2 * max_shown) + ", at the end of " +
                   last_characters(text);
  }
  return problem;
}

[[noreturn]] void refuse_syntax(const std::string& text) {
  ErrorListener listener;
  json::sax_parse(text, &listener);
  const std::size_t last = std::clamp<std::size_t>(listener.bytes, 1, text.size() + 1) - 1;
  const Position position = find_position(text, last);
  const Problem problem = parse_problem(listener.words);
  throw JsonTextError(position.line, "not JSON: column " + std::to_string(position.column) + ": " +
                                         problem.what + "; " + problem.cure);
}

}  // namespace

json parse_json(const std::string& text, std::size_t max_levels) {
  if (const auto byte = find_too_deep(text, max_levels)) {
    const Position position = find_position(text, *byte);
    throw JsonTextError(position.line, "column " + std::to_string(position.column) +
                                           ": lists and objects nested more than " +
                                           std::to_string(max_levels) +
                                           " levels deep; write it with fewer levels");
  }
  json value = json::parse(text, nullptr, false);
  if (value.is_discarded()) refuse_syntax(text);
  return value;
}

}  // namespace nagi
