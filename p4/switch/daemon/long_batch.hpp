// SPDX-License-Identifier: Apache-2.0
//
// A batch of very many operations, performed piece by piece while packets pass: as a whole it would
// take as long to read as to perform. Nothing of it is to be seen before its end.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "control/control_socket.hpp"
#include "switch/daemon/controller.hpp"

namespace nagi::p4 {

/// Takes the elements of "operations" out of a request's text as they come. What is left is the
/// same request with an empty list. If that and all elements are JSON, so is the whole, and the
/// other way round.
class BatchText {
 public:
  /// The rest of an element, up to its end: true then. `text` is what has not been looked at.
  bool next(std::string_view& text);
  /// After next() was true.
  [[nodiscard]] const std::string& element() const { return element_; }
  [[nodiscard]] const std::string& rest() const { return rest_; }
  /// Whether there was a list of operations.
  [[nodiscard]] bool found() const { return found_; }

 private:
  void look_at(char letter);

  std::string rest_;
  std::string element_;
  std::string key_;  // the string that was last at the depth of the request's keys
  std::size_t depth_ = 0;
  std::size_t count_ = 0;  // of elements
  bool in_text_ = false;
  bool escaped_ = false;
  bool in_list_ = false;
  bool found_ = false;
  bool at_end_ = false;  // of an element
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
