// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace nagi {

/// An input that is refused, with exit status 2: where (file, line, key, as far as there are), what
/// is wrong; what would be right.
class InputError : public std::runtime_error {
 public:
  /// `code`: what kind of refusal it is, one word for programs; empty: the input is no good.
  explicit InputError(const std::string& what, const char* code = "")
      : std::runtime_error(what), code_(code) {}
  [[nodiscard]] const char* code() const { return code_; }

 private:
  const char* code_;
};

}  // namespace nagi
