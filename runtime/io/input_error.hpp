// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace nagi {

/// An input that is refused, with exit status 2: where (file, line, key, as far as there are), what
/// is wrong; what would be right.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace nagi
