// SPDX-License-Identifier: Apache-2.0
#include "switch/daemon/long_batch.hpp"

#include <utility>

#include "control/json_source.hpp"
#include "io/input_error.hpp"

namespace nagi::p4 {

using nlohmann::json;

bool BatchText::next(std::string_view& text) {
  if (std::exchange(at_end_, false)) element_.clear();
  while (!text.empty() && !at_end_) {
    read_letter(text.front());
    text.remove_prefix(1);
  }
  return at_end_;
}

void BatchText::read_letter(char letter) {
  constexpr std::size_t key_depth = 1;
  constexpr std::size_t element_depth = 2;
  if (in_list_ && !in_text_ && depth_ == element_depth && (letter == ',' || letter == ']')) {
    const bool empty = element_.find_first_not_of(" \t\r") == std::string::npos;
    in_list_ = letter == ',';
    // "[]" has no element; "[,]" and "[1,]" have an element that is not valid JSON.
    at_end_ = !(empty && count_ == 0 && !in_list_);
    if (at_end_) ++count_;
    if (in_list_) return;
  }
  (in_list_ ? element_ : rest_) += letter;
  if (in_text_) {
    if (escaped_ || letter == '\\') {
      escaped_ = !escaped_;
    } else if (letter == '"') {
      in_text_ = false;
    }
    if (in_text_ && depth_ == key_depth) key_ += letter;
    return;
  }
  switch (letter) {
    case '"':
      in_text_ = true;
      if (depth_ == key_depth) key_.clear();
      break;
    case ',':
      if (depth_ == key_depth) key_.clear();
      break;
    case '[':
      if (depth_ == key_depth && key_ == "operations" && !has_operations_)
        has_operations_ = in_list_ = true;
      ++depth_;
      break;
    case '{':
      ++depth_;
      break;
    case ']':
    case '}':
      if (depth_ > 0) --depth_;
      break;
    default:
      break;
  }
}

void LongBatch::perform(const std::string& operation) {
  const auto refuse = [&](const InputError& error) {
    throw InputError("operations." + std::to_string(performed_) + ": " + error.what(),
                     error.code());
  };
  std::optional<runtime::JsonSource> source;
  try {
    source.emplace("control message", operation);
    if (!batch_) batch_.emplace(controller_);
    const auto where = json::json_pointer("/operations") / performed_;
    const json answer = batch_->perform(source->value(), where);
    answers_ += (performed_ == 0 ? "" : ",") + runtime::line_of(answer);
  } catch (const ConfigError& error) {
    throw source->located(error);
  } catch (const InputError& error) {
    refuse(error);
  }
  ++performed_;
}

std::optional<std::string> LongBatch::take(std::string_view piece) {
  try {
    while (text_.next(piece)) perform(text_.element());
  } catch (const InputError& error) {
    batch_.reset();
    return runtime::refusal(error);
  }
  return std::nullopt;
}

std::string LongBatch::finish() {
  if (!batch_) {  // the request has no operations: it is another request, or an empty batch
    return runtime::answer(text_.rest(),
                           [&](const json& request) { return controller_.answer(request); });
  }
  const std::string checked = runtime::answer(text_.rest(), [](const json& request) {
    ObjectReader reader(request, json::json_pointer());
    if (const std::string op = reader.text("op"); op != "batch") {
      throw ConfigError(reader.at("operations"), "operation " + shown(op) + " has no such key",
                        "leave it out, or set \"op\" to \"batch\"");
    }
    reader.only({"op", "operations"});
    (void)reader.array("operations");
    return json();
  });
  if (checked != "null") {
    batch_.reset();
    return checked;
  }
  batch_->commit();
  return R"({"ok":true,"answers":[)" + answers_ + "]}";
}

}  // namespace nagi::p4
