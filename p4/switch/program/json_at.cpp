// SPDX-License-Identifier: Apache-2.0
#include "program/json_at.hpp"

#include "base/object_reader.hpp"
#include "io/input_error.hpp"

namespace nagi::p4 {

JsonAt JsonAt::operator[](const char* key) const {
  if (!is_object()) refuse("not an object: " + what_it_is());
  const auto member = value_->find(key);
  if (member == value_->end()) refuse("has no \"" + std::string(key) + "\"");
  return {*member, *this, key, 0};
}

bool JsonAt::has(const char* key) const {
  if (!is_object()) return false;
  const auto member = value_->find(key);
  return member != value_->end() && !member->is_null();
}

JsonAt JsonAt::element(std::size_t index) const {
  if (index >= size()) refuse("has no element " + std::to_string(index));
  return {(*value_)[index], *this, nullptr, index};
}

std::size_t JsonAt::size() const {
  if (!is_array()) refuse("not an array: " + what_it_is());
  return value_->size();
}

const std::string& JsonAt::text() const {
  if (!is_text()) refuse("not a string: " + what_it_is());
  return value_->get_ref<const std::string&>();
}

std::uint64_t JsonAt::whole(std::uint64_t minimum, std::uint64_t maximum) const {
  if (is_number() && (value_->is_number_unsigned() || value_->get<std::int64_t>() >= 0)) {
    const auto number = value_->get<std::uint64_t>();
    if (number >= minimum && number <= maximum) return number;
  }
  refuse("not a whole number from " + std::to_string(minimum) + " to " + std::to_string(maximum) +
         ": " + what_it_is());
}

std::int64_t JsonAt::integer(std::int64_t minimum, std::int64_t maximum) const {
  if (is_number()) {
    const bool fits = !value_->is_number_unsigned() || value_->get<std::uint64_t>() <= INT64_MAX;
    const auto number = fits ? value_->get<std::int64_t>() : 0;
    if (fits && number >= minimum && number <= maximum) return number;
  }
  refuse("not a whole number from " + std::to_string(minimum) + " to " + std::to_string(maximum) +
         ": " + what_it_is());
}

bool JsonAt::flag() const {
  if (*value_ == 0) return false;  // p4c writes this for some fields
  if (!value_->is_boolean()) refuse("neither true nor false: " + what_it_is());
  return value_->get<bool>();
}

bool JsonAt::flag(const char* key, bool otherwise) const {
  return has(key) ? (*this)[key].flag() : otherwise;
}

void JsonAt::refuse(const std::string& problem, const std::string& cure) const {
  const std::string line = source();
  throw InputError(*file_ + ": " + path() + ": " + problem +
                   (line.empty() ? "" : " (" + line + ")") + "; " + cure);
}

void JsonAt::unsupported(const std::string& construct) const {
  refuse(construct + ": not supported by nagi-switch",
         "write the program without it, or run it on simple_switch");
}

std::string JsonAt::path() const {
  std::string here;
  for (const Step* step = step_.get(); step->before; step = step->before.get()) {
    here = (step->key != nullptr ? step->key : std::to_string(step->index)) +
           (here.empty() ? "" : ".") + here;
  }
  return here.empty() ? "the whole program" : here;
}

std::string JsonAt::source() const {
  for (const Step* step = step_.get(); step != nullptr; step = step->before.get()) {
    if (!step->value->is_object()) continue;
    const auto member = step->value->find("source_info");
    if (member == step->value->end() || !member->is_object()) continue;
    const auto line = member->find("line");
    if (line == member->end() || !line->is_number_integer()) continue;
    const auto name = member->find("filename");
    const bool named = name != member->end() && name->is_string() && !name->empty();
    return (named ? name->get<std::string>() : *file_) + ":" + line->dump();
  }
  return {};
}

std::string JsonAt::what_it_is() const {
  if (value_->is_object()) return "an object";
  if (value_->is_array()) return "an array";
  return shown(*value_);
}

}  // namespace nagi::p4
