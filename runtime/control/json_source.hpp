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
  /// Parse `text`, which comes from `name` (a path, or words such as "control message") and begins
  /// at line `first_line`. Throws InputError for a syntax error, a key that occurs twice, or more
  /// than max_nesting levels.
  JsonSource(std::string name, std::string text, int first_line = 1);
  /// Read a file. Throws InputError also if the file cannot be read.
  static JsonSource from_file(const std::string& path);

  [[nodiscard]] const nlohmann::json& value() const { return value_; }
  /// Return the error of a reader with file and line.
  [[nodiscard]] InputError located(const ConfigError& error) const;

 private:
  /// Return the beginning of an error message.
  [[nodiscard]] std::string place(int line) const;

  std::string name_;
  int first_line_;
  std::string text_;  // the text, in which lines are searched only for errors
  nlohmann::json value_;
};

}  // namespace nagi::runtime
