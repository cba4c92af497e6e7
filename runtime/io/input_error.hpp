// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace nagi {

/// An error for refused input, which leads to exit status 2. The message names the position (file,
/// line, key), the error and the cure.
class InputError : public std::runtime_error {
 public:
  /// Create an error. `code` names the kind of error for programs; it is empty if programs need not
  /// distinguish the error from other invalid input.
  explicit InputError(const std::string& what, const char* code = "")
      : std::runtime_error(what), code_(code) {}
  [[nodiscard]] const char* code() const { return code_; }

 private:
  const char* code_;
};

}  // namespace nagi
