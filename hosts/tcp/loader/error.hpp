// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace nagi::tcp {

/// What was asked for cannot be: what is wrong; what would be right.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace nagi::tcp
