// SPDX-License-Identifier: Apache-2.0
#include "control/json_source.hpp"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include "base/json_text.hpp"
#include "base/text.hpp"

namespace nagi::runtime {

namespace {

using nlohmann::json;

constexpr std::size_t max_key_length = 200;  // characters of a key, its parents included

/// Walks over text and counts the lines it has passed.
class LineCounter {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  LineCounter(const char* at, int* line) : at_(at), line_(line) {}
  reference operator*() const { return *at_; }
  LineCounter& operator++() {
    if (*at_ == '\n') ++*line_;
    ++at_;
    return *this;
  }
  LineCounter operator++(int) {
    const LineCounter before = *this;
    ++*this;
    return before;
  }
  bool operator==(const LineCounter& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  int* line_;
};

/// Follows the parser through the text and records the line of current key.
class LineRecorder final : public nlohmann::json_sax<json> {
 public:
  LineRecorder(const int& line, std::map<std::string, int>& lines) : line_(line), lines_(lines) {
    lines_[""] = line;
  }

  [[nodiscard]] const std::string& repeated_key() const { return repeated_key_; }

  bool null() override { return value(); }
  bool boolean(bool /*value*/) override { return value(); }
  bool number_integer(number_integer_t /*value*/) override { return value(); }
  bool number_unsigned(number_unsigned_t /*value*/) override { return value(); }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return value(); }
  bool string(string_t& /*value*/) override { return value(); }
  bool binary(binary_t& /*value*/) override { return value(); }
  bool start_object(std::size_t /*size*/) override { return open(false); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t /*size*/) override { return open(true); }
  bool end_array() override { return close(); }

  bool key(string_t& key) override {
    const auto where = open_.back().where / key;
    if (!lines_.emplace(where.to_string(), line_).second) repeated_key_ = key;
    next_ = where;
    return repeated_key_.empty();
  }

  /// Stop the parser. An error is not expected, because the text has been parsed before.
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const json::exception& /*error*/) override {
    return false;
  }

 private:
  struct Open {
    json::json_pointer where;
    bool is_array;
    std::size_t elements;
  };

  void place_element() {
    if (open_.empty() || !open_.back().is_array) return;
    next_ = open_.back().where / open_.back().elements++;
    lines_.emplace(next_.to_string(), line_);
  }
  bool value() {
    place_element();
    return true;
  }
  bool open(bool is_array) {
    place_element();
    open_.push_back({next_, is_array, 0});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  const int& line_;
  std::map<std::string, int>& lines_;
  json::json_pointer next_;
  std::vector<Open> open_;
  std::string repeated_key_;
};

void walk(const std::string& text, int& line, LineRecorder& recorder) {
  const char* begin = text.data();
  json::sax_parse(LineCounter(begin, &line), LineCounter(begin + text.size(), &line), &recorder);
}

/// Return the number of members of all objects in a value. Members with the same key count once.
std::size_t count_members(const json& value) {
  std::size_t count = 0;
  std::vector<const json*> waiting{&value};
  while (!waiting.empty()) {
    const json& current = *waiting.back();
    waiting.pop_back();
    if (current.is_object()) count += current.size();
    if (!current.is_structured()) continue;
    for (const json& inner : current) {
      if (inner.is_structured()) waiting.push_back(&inner);
    }
  }
  return count;
}

/// Return the number of members of all objects in JSON text: the number of colons outside strings.
std::size_t count_members(const std::string& text) {
  std::size_t count = 0;
  for_each_outside_strings(text, [&](std::size_t at) {
    count += text[at] == ':' ? 1 : 0;
    return true;
  });
  return count;
}

}  // namespace

JsonSource::JsonSource(std::string name, std::string text, int first_line)
    : name_(std::move(name)), first_line_(first_line), text_(std::move(text)) {
  try {
    value_ = parse_json(text_);
  } catch (const JsonTextError& error) {
    throw InputError(position(first_line_ - 1 + error.line()) + error.what());
  }
  if (count_members(value_) == count_members(text_)) return;

  // Recording the lines of all keys takes far longer than parsing and is rarely needed.
  int line = first_line_;
  std::map<std::string, int> lines;
  LineRecorder recorder(line, lines);
  walk(text_, line, recorder);
  throw InputError(position(line) + shortened(recorder.repeated_key()) +
                   ": key given twice; remove one of them");
}

std::string JsonSource::position(int line) const {
  return printable(name_) + ":" + std::to_string(line) + ": ";
}

JsonSource JsonSource::from_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file) {
    throw InputError(printable(path) + ": cannot read it: " + std::strerror(errno) +
                     "; give the path of a JSON configuration");
  }
  return {path, text.str()};
}

InputError JsonSource::located(const ConfigError& error) const {
  int at = first_line_;
  std::map<std::string, int> lines;
  LineRecorder recorder(at, lines);
  walk(text_, at, recorder);
  int line = first_line_;
  for (auto where = error.where();; where = where.parent_pointer()) {
    const auto entry = lines.find(where.to_string());
    if (entry != lines.end()) {
      line = entry->second;
      break;
    }
  }
  std::string key = error.where().to_string();
  for (char& letter : key) {
    if (letter == '/') letter = '.';
  }
  if (!key.empty()) key = shortened(key.substr(1), max_key_length) + ": ";
  return InputError{position(line) + key + error.what() + "; " + error.cure()};
}

}  // namespace nagi::runtime
