// SPDX-License-Identifier: Apache-2.0
//
// A very long batch of operations, which is performed in pieces while packets pass, as its JSON
// takes about as long to read as to perform. Its effects become visible only at its end.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "control/control_socket.hpp"
#include "switch/daemon/controller.hpp"

namespace nagi::p4 {

/// Extracts the elements of "operations" from the text of a request as it is read. The remaining
/// text is the request with an empty list. The request is valid JSON exactly if the remaining text
/// and all elements are.
class BatchText {
 public:
  /// Read up to the end of the next element. Return true at its end. `text` keeps the unread part.
  bool next(std::string_view& text);
  /// Return the element after next() returned true.
  [[nodiscard]] const std::string& element() const { return element_; }
  [[nodiscard]] const std::string& rest() const { return rest_; }
  /// Return whether the request has a list of operations.
  [[nodiscard]] bool has_operations() const { return has_operations_; }

 private:
  void look_at(char letter);

  std::string rest_;
  std::string element_;
  std::string key_;  // last string at the depth of the request's keys
  std::size_t depth_ = 0;
  std::size_t count_ = 0;  // number of elements
  bool in_text_ = false;
  bool escaped_ = false;
  bool in_list_ = false;
  bool has_operations_ = false;
  bool at_end_ = false;  // at the end of an element
};

class LongBatch final : public runtime::LongRequest {
 public:
  explicit LongBatch(Controller& controller) : controller_(controller) {}
  std::optional<std::string> take(std::string_view piece) override;
  std::string finish() override;

 private:
  void perform(const std::string& operation);

  Controller& controller_;
  BatchText text_;
  std::optional<Controller::Batch> batch_;
  std::size_t performed_ = 0;
  std::string answers_;
};

}  // namespace nagi::p4
