// SPDX-License-Identifier: Apache-2.0
//
// A position in the compiler's JSON. Every access checks the JSON. Errors name the position and, if
// the JSON has it, the line of the P4 source. Unknown keys are ignored, because they may be for
// other switches.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

namespace nagi::p4 {

class JsonAt {
 public:
  using Json = nlohmann::json;

  /// Make the position of the root. `file` is the name of the file in error messages. `root` and
  /// `file` must outlive all positions.
  JsonAt(const Json& root, const std::string& file)
      : value_(&root),
        file_(&file),
        step_(std::make_shared<const Step>(Step{nullptr, &root, nullptr, 0})) {}

  [[nodiscard]] const Json& json() const { return *value_; }
  [[nodiscard]] bool is_null() const { return value_->is_null(); }
  [[nodiscard]] bool is_object() const { return value_->is_object(); }
  [[nodiscard]] bool is_array() const { return value_->is_array(); }
  [[nodiscard]] bool is_text() const { return value_->is_string(); }
  [[nodiscard]] bool is_number() const { return value_->is_number_integer(); }

  /// Return the position of a key's value. Throws InputError if the key does not exist.
  [[nodiscard]] JsonAt operator[](const char* key) const;
  /// Return whether the key exists and is not null.
  [[nodiscard]] bool has(const char* key) const;
  /// Return the position of an element of an array. Throws InputError if it does not exist.
  [[nodiscard]] JsonAt element(std::size_t index) const;
  /// Return the number of elements. Throws InputError if the value is no array.
  [[nodiscard]] std::size_t size() const;
  /// Call `visit` with the position of each element in a key's array. A missing key counts as an
  /// empty array.
  template <typename Visit>
  void each(const char* key, const Visit& visit) const {
    if (!has(key)) return;
    const JsonAt list = (*this)[key];
    for (std::size_t i = 0, n = list.size(); i < n; ++i) visit(list.element(i));
  }
  template <typename Visit>
  void each(const Visit& visit) const {
    for (std::size_t i = 0, n = size(); i < n; ++i) visit(element(i));
  }

  // Return the value. Throw InputError if it has another type or is outside the bounds.
  [[nodiscard]] const std::string& text() const;
  [[nodiscard]] std::uint64_t whole(std::uint64_t minimum, std::uint64_t maximum) const;
  [[nodiscard]] std::int64_t integer(std::int64_t minimum, std::int64_t maximum) const;
  [[nodiscard]] bool flag() const;
  /// Return the boolean value of a key, or `otherwise` if the key is missing.
  [[nodiscard]] bool flag(const char* key, bool otherwise) const;

  /// Throw InputError with this position, the problem and the cure.
  [[noreturn]] void refuse(const std::string& problem,
                           const std::string& cure = "compile the program again with p4c") const;
  /// Throw InputError, because this switch does not support a construct of P4.
  [[noreturn]] void unsupported(const std::string& construct) const;

  /// Return "FILE:LINE" of the P4 source, from the nearest enclosing object that has it, or an
  /// empty text.
  [[nodiscard]] std::string source() const;

 private:
  /// A step of the path from the root to a value. Positions below a value share the steps to it.
  struct Step {
    std::shared_ptr<const Step> before;  // null for the root
    const Json* value;
    const char* key;  // null for an element of an array
    std::size_t index;
  };

  JsonAt(const Json& value, const JsonAt& parent, const char* key, std::size_t index)
      : value_(&value),
        file_(parent.file_),
        step_(std::make_shared<const Step>(Step{parent.step_, &value, key, index})) {}

  [[nodiscard]] std::string path() const;
  [[nodiscard]] std::string what_it_is() const;

  const Json* value_;
  const std::string* file_;
  std::shared_ptr<const Step> step_;
};

}  // namespace nagi::p4
