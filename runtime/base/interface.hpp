// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace nagi {

/// The base class of interfaces, which are used through pointers and cannot be copied or moved.
class Interface {
 public:
  Interface(const Interface&) = delete;
  Interface& operator=(const Interface&) = delete;
  virtual ~Interface() = default;

 protected:
  Interface() = default;
};

}  // namespace nagi
