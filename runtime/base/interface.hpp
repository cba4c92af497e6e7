// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace nagi {

/// A base of classes that are used through pointers: they can be neither copied nor moved.
class Interface {
 public:
  Interface(const Interface&) = delete;
  Interface& operator=(const Interface&) = delete;
  virtual ~Interface() = default;

 protected:
  Interface() = default;
};

}  // namespace nagi
