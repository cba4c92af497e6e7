// SPDX-License-Identifier: Apache-2.0
//
// JSON text that remembers the line of every key, so that errors can name it.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "io/input_error.hpp"
#include "model/json.hpp"

namespace nagi::daemon {

class JsonSource {
 public:
  /// Parses `text`, which came from `name` (a file's path, or words such as "control message").
  /// Throws InputError for a syntax error or a key given twice.
  JsonSource(std::string name, const std::string& text);
  /// Reads a file. Throws InputError also if it cannot be read.
  static JsonSource from_file(const std::string& path);

  [[nodiscard]] const nlohmann::json& value() const { return value_; }
  /// The error of a reader, with file and line.
  [[nodiscard]] InputError located(const model::ConfigError& error) const;

 private:
  std::string name_;
  nlohmann::json value_;
  std::map<std::string, int> lines_;  // JSON pointer -> line
};

}  // namespace nagi::daemon
