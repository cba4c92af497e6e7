// SPDX-License-Identifier: Apache-2.0
//
// JSON text, and the line of every key, so that errors can name it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/object_reader.hpp"
#include "io/input_error.hpp"

namespace nagi::runtime {

class JsonSource {
 public:
  /// Parses `text`, which came from `name` (a file's path, or words such as "control message").
  /// Throws InputError for a syntax error, a key given twice, or more levels than anybody needs
  /// (max_nesting). `first_line`: the number of the line that it begins with.
  JsonSource(std::string name, std::string text, int first_line = 1);
  /// Reads a file. Throws InputError also if it cannot be read.
  static JsonSource from_file(const std::string& path);

  [[nodiscard]] const nlohmann::json& value() const { return value_; }
  /// The error of a reader, with file and line.
  [[nodiscard]] InputError located(const ConfigError& error) const;

 private:
  /// The beginning of an error.
  [[nodiscard]] std::string place(int line) const;

  std::string name_;
  int first_line_;
  std::string text_;  // for the lines, which are looked for when they are wanted
  nlohmann::json value_;
};

}  // namespace nagi::runtime
