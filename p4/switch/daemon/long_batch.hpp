// SPDX-License-Identifier: Apache-2.0
//
// A very long batch of operations. Each operation is parsed and performed as soon as its text has
// arrived, while packets pass, because parsing the whole text at once would delay packets. Packets
// see the effects of the operations only at the end of the batch.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "control/control_socket.hpp"
#include "switch/daemon/controller.hpp"

namespace nagi::p4 {

/// Splits the text of a request "batch", piece by piece, into the elements of "operations" and the
/// remaining text, which is the request with an empty list. The request is valid JSON if and only
/// if the remaining text and all elements are valid JSON.
class BatchText {
 public:
  /// Read `text` up to the end of the next element, and remove what was read from `text`. Return
  /// whether an element is complete.
  bool next(std::string_view& text);
  /// Return the element that is complete after next() returned true.
  [[nodiscard]] const std::string& element() const { return element_; }
  /// Return the remaining text, without elements.
  [[nodiscard]] const std::string& rest() const { return rest_; }
  /// Return whether the request has a list of operations.
  [[nodiscard]] bool has_operations() const { return has_operations_; }

 private:
  void read_letter(char letter);

  std::string rest_;
  std::string element_;
  std::string key_;  // the last string at the depth of the request's keys
  std::size_t depth_ = 0;
  std::size_t count_ = 0;  // number of complete elements
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
