// SPDX-License-Identifier: Apache-2.0
//
// A strict reader of JSON objects. An unknown key, a missing key, a wrong type and a value outside
// its bounds are errors that name the key and the cure.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/bound.hpp"

namespace nagi {

/// An error in a configuration, with its position (a JSON pointer) and its cure.
class ConfigError : public std::runtime_error {
 public:
  ConfigError(nlohmann::json::json_pointer where, const std::string& what_is_wrong,
              std::string cure)
      : std::runtime_error(what_is_wrong), where_(std::move(where)), cure_(std::move(cure)) {}
  [[nodiscard]] const nlohmann::json::json_pointer& where() const { return where_; }
  [[nodiscard]] const std::string& cure() const { return cure_; }

 private:
  nlohmann::json::json_pointer where_;
  std::string cure_;
};

/// A reader of one JSON object. All functions throw ConfigError. Call only() first, so that a
/// misspelt key is reported as unknown, and not as missing.
class ObjectReader {
 public:
  /// Read `value`, which is at position `where`. Throws if it is no object.
  ObjectReader(const nlohmann::json& value, nlohmann::json::json_pointer where);

  /// Throw if the object has a key that is not one of `known`.
  void only(const std::vector<std::string_view>& known);

  [[nodiscard]] bool has(const std::string& key) const { return object_.contains(key); }
  [[nodiscard]] const nlohmann::json::json_pointer& here() const { return where_; }
  [[nodiscard]] nlohmann::json::json_pointer at(const std::string& key) const {
    return where_ / key;
  }

  // These functions return the value of a key. They throw if the key is missing or its value has
  // another type.
  [[nodiscard]] const nlohmann::json& any(const std::string& key) const;
  [[nodiscard]] ObjectReader object(const std::string& key) const { return {any(key), at(key)}; }
  [[nodiscard]] const nlohmann::json& array(const std::string& key) const;
  /// Return a text that is not empty and has no control characters.
  [[nodiscard]] std::string text(const std::string& key) const;
  [[nodiscard]] std::uint64_t whole(
      const std::string& key, std::uint64_t minimum = 0,
      std::uint64_t maximum = std::numeric_limits<std::int64_t>::max()) const;
  [[nodiscard]] std::uint64_t whole(const std::string& key, Bound<std::uint64_t> bound) const {
    return whole(key, bound.minimum, bound.maximum);
  }
  [[nodiscard]] double number(const std::string& key, Bound<double> bound) const;
  [[nodiscard]] bool flag(const std::string& key) const;

 private:
  const nlohmann::json& object_;
  nlohmann::json::json_pointer where_;
  bool keys_are_known_ = false;  // only() was called and found no unknown key
};

/// Return a value as text for messages, on one line and shortened.
std::string shown(const nlohmann::json& value);

/// Return the error for a value that is not allowed; `cure` describes the allowed values.
ConfigError not_possible(const nlohmann::json& value, const nlohmann::json::json_pointer& where,
                         const std::string& cure);
/// Return a number. Throws ConfigError if `value` is no number or is out of its bounds.
std::uint64_t bounded(const nlohmann::json& value, const nlohmann::json::json_pointer& where,
                      Bound<std::uint64_t> bound);
double bounded(const nlohmann::json& value, const nlohmann::json::json_pointer& where,
               Bound<double> bound);

/// Return element `index` of a list of increasing numbers. Without `previous`, it must be at least
/// 0; otherwise at least `previous`, the element before it, plus `min_step`. It must be less than
/// `end`; `end_name` describes this limit in errors. Throws ConfigError.
std::uint64_t next_in(const nlohmann::json& list, std::size_t index,
                      const nlohmann::json::json_pointer& where,
                      std::optional<std::uint64_t> previous, std::uint64_t min_step,
                      std::uint64_t end, const std::string& end_name);

}  // namespace nagi
