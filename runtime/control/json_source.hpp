// SPDX-License-Identifier: Apache-2.0
//
// JSON text with its source, so that errors can name the file and the line of a key.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/object_reader.hpp"
#include "io/input_error.hpp"

namespace nagi::runtime {

class JsonSource {
 public:
  /// Parse `text`. Errors call its source `name` (a path, or a name such as "control message"), and
  /// count lines from `first_line`. Throws InputError for a syntax error, a key that occurs twice,
  /// or more than max_nesting levels.
  JsonSource(std::string name, std::string text, int first_line = 1);
  /// Read a file. Throws InputError also if the file cannot be read.
  static JsonSource from_file(const std::string& path);

  [[nodiscard]] const nlohmann::json& value() const { return value_; }
  /// Return `error` with file and line, as an InputError.
  [[nodiscard]] InputError located(const ConfigError& error) const;

 private:
  /// Return the beginning of an error message.
  [[nodiscard]] std::string position(int line) const;

  std::string name_;
  int first_line_;
  std::string text_;  // kept to find the line of an error
  nlohmann::json value_;
};

}  // namespace nagi::runtime
