// SPDX-License-Identifier: Apache-2.0
//
// JSON objects, read strictly: an unknown key, a missing one, a wrong type or a value outside its
// bounds is an error that names the key and says what would be right.
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

/// What is wrong with a configuration, where (a JSON pointer), and what would be right.
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

/// One JSON object being read. Whoever reads it says by only() which keys it may have, before a key
/// is found missing that was merely misspelt.
class ObjectReader {
 public:
  /// Throws if `value` is no object.
  ObjectReader(const nlohmann::json& value, nlohmann::json::json_pointer where);

  /// Throws if there is a key that is not one of `known`.
  void only(const std::vector<std::string_view>& known);

  [[nodiscard]] bool has(const std::string& key) const { return object_.contains(key); }
  [[nodiscard]] const nlohmann::json::json_pointer& here() const { return where_; }
  [[nodiscard]] nlohmann::json::json_pointer at(const std::string& key) const {
    return where_ / key;
  }

  // The value of a key. They throw if it is missing or not what is asked for.
  [[nodiscard]] const nlohmann::json& any(const std::string& key) const;
  [[nodiscard]] ObjectReader object(const std::string& key) const { return {any(key), at(key)}; }
  [[nodiscard]] const nlohmann::json& array(const std::string& key) const;
  /// Not empty, and without control characters.
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
  bool keys_are_known_ = false;  // only() has found no other
};

/// A value as messages show it: on one line, and not long.
std::string shown(const nlohmann::json& value);

/// A value is not what it may be; `cure` says what it may.
ConfigError not_possible(const nlohmann::json& value, const nlohmann::json::json_pointer& where,
                         const std::string& cure);
/// A number within its bounds; throws if it is none.
std::uint64_t bounded(const nlohmann::json& value, const nlohmann::json::json_pointer& where,
                      Bound<std::uint64_t> bound);
double bounded(const nlohmann::json& value, const nlohmann::json::json_pointer& where,
               Bound<double> bound);

/// An element of a list of numbers that follow each other: the first from 0 on, each `apart` or
/// more after the one before, and all less than `end`, which is what `end_name` says.
std::uint64_t next_in(const nlohmann::json& list, std::size_t index,
                      const nlohmann::json::json_pointer& where,
                      std::optional<std::uint64_t> before, std::uint64_t apart, std::uint64_t end,
                      const std::string& end_name);

}  // namespace nagi
