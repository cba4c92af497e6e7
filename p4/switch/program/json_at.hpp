// SPDX-License-Identifier: Apache-2.0
//
// A place in the compiler's JSON: what reads it can trust nothing, and every complaint names the
// place and, where the compiler says it, the line of the P4 source. Keys that are not asked for are
// ignored, as other switches read them.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

namespace nagi::p4 {

class JsonAt {
 public:
  using Json = nlohmann::json;

  /// The root of `file`. `root` and `file` live longer than every place in it.
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

  /// The value of a key that must be there.
  [[nodiscard]] JsonAt operator[](const char* key) const;
  /// Whether the key is there and not null.
  [[nodiscard]] bool has(const char* key) const;
  /// Of an array; it must be there.
  [[nodiscard]] JsonAt element(std::size_t index) const;
  /// Number of elements; throws if it is no array.
  [[nodiscard]] std::size_t size() const;
  /// The same, of a key's array; nothing there is an empty one.
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

  [[nodiscard]] const std::string& text() const;
  [[nodiscard]] std::uint64_t whole(std::uint64_t minimum, std::uint64_t maximum) const;
  [[nodiscard]] std::int64_t integer(std::int64_t minimum, std::int64_t maximum) const;
  [[nodiscard]] bool flag() const;
  /// A key's flag; `otherwise` if the key is not there.
  [[nodiscard]] bool flag(const char* key, bool otherwise) const;

  /// Throws InputError: what is wrong here; what would be right.
  [[noreturn]] void refuse(const std::string& what,
                           const std::string& cure = "compile the program again with p4c") const;
  /// Throws InputError: a construct of P4 that this switch does not have.
  [[noreturn]] void unsupported(const std::string& construct) const;

  /// "FILE:LINE" of the P4 source, from the nearest object around it that says so; or nothing.
  [[nodiscard]] std::string source() const;

 private:
  /// Where a value is; places share the way to them.
  struct Step {
    std::shared_ptr<const Step> before;
    const Json* value;
    const char* key;  // nothing: an element
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
