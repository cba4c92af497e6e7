// SPDX-License-Identifier: Apache-2.0
#include "base/object_reader.hpp"

#include <algorithm>
#include <set>

#include "base/text.hpp"

namespace nagi {

using nlohmann::json;

ObjectReader::ObjectReader(const json& value, json::json_pointer where)
    : object_(value), where_(std::move(where)) {
  if (!object_.is_object()) {
    throw ConfigError(where_, std::string("expected an object, found ") + object_.type_name(),
                      "write {\"key\": value, ...}");
  }
}

void ObjectReader::only(const std::vector<std::string_view>& known) {
  for (auto member = object_.begin(); member != object_.end(); ++member) {
    const std::string& key = member.key();
    if (std::ranges::find(known, key) != known.end()) continue;
    const std::string meant = nearest(key, known);
    std::string all;
    for (const std::string_view name : std::set(known.begin(), known.end())) {
      all += (all.empty() ? "" : ", ") + std::string(name);
    }
    throw ConfigError(where_ / key, "unknown key " + shortened(key),
                      meant.empty() ? "known here: " + all : "did you mean " + meant);
  }
  keys_are_known_ = true;
}

const json& ObjectReader::any(const std::string& key) const {
  const auto member = object_.find(key);
  if (member != object_.end()) return *member;
  if (!keys_are_known_) {
    for (auto other = object_.begin(); other != object_.end(); ++other) {
      if (nearest(other.key(), {key}).empty()) continue;
      throw ConfigError(where_ / other.key(), "unknown key " + shortened(other.key()),
                        "did you mean " + key);
    }
  }
  throw ConfigError(where_, "missing key " + key, "add \"" + key + "\"");
}

const json& ObjectReader::array(const std::string& key) const {
  const json& value = any(key);
  if (!value.is_array()) {
    throw ConfigError(at(key), std::string("expected a list, found ") + value.type_name(),
                      "write [...]");
  }
  return value;
}

std::string ObjectReader::text(const std::string& key) const {
  const json& value = any(key);
  if (!value.is_string() || value.get_ref<const std::string&>().empty()) {
    throw ConfigError(at(key), "expected text, found " + shown(value),
                      "write a text in quotes that is not empty");
  }
  const auto& text = value.get_ref<const std::string&>();
  if (has_unprintable(text)) {
    throw ConfigError(at(key), "a control character in " + shown(value), "remove it");
  }
  return text;
}

std::uint64_t ObjectReader::whole(const std::string& key, std::uint64_t minimum,
                                  std::uint64_t maximum) const {
  return bounded(any(key), at(key), Bound<std::uint64_t>{minimum, maximum});
}

bool ObjectReader::flag(const std::string& key) const {
  const json& value = any(key);
  if (!value.is_boolean()) throw not_possible(value, at(key), "true or false");
  return value.get<bool>();
}

double ObjectReader::number(const std::string& key, Bound<double> bound) const {
  return bounded(any(key), at(key), bound);
}

std::string shown(const json& value) {
  return shortened(value.dump(-1, ' ', false, json::error_handler_t::replace));
}

namespace {

bool is_whole(const json& value, Bound<std::uint64_t> bound) {
  if (!value.is_number_integer()) return false;
  if (!value.is_number_unsigned() && value.get<std::int64_t>() < 0) return false;
  const auto number = value.get<std::uint64_t>();
  return number >= bound.minimum && number <= bound.maximum;
}

}  // namespace

ConfigError not_possible(const json& value, const json::json_pointer& where,
                         const std::string& cure) {
  return {where, "not a possible value: " + shown(value), cure};
}

std::uint64_t bounded(const json& value, const json::json_pointer& where,
                      Bound<std::uint64_t> bound) {
  if (is_whole(value, bound)) return value.get<std::uint64_t>();
  const std::string minimum = std::to_string(bound.minimum);
  if (bound.minimum == bound.maximum) throw not_possible(value, where, "must be " + minimum);
  throw not_possible(value, where,
                     "a whole number from " + minimum + " to " + std::to_string(bound.maximum));
}

double bounded(const json& value, const json::json_pointer& where, Bound<double> bound) {
  if (value.is_number()) {
    const auto number = value.get<double>();
    if (number >= bound.minimum && number <= bound.maximum) return number;
  }
  throw not_possible(
      value, where,
      "a number from " + json(bound.minimum).dump() + " to " + json(bound.maximum).dump());
}

std::uint64_t next_in(const json& list, std::size_t index, const json::json_pointer& where,
                      std::optional<std::uint64_t> previous, std::uint64_t min_step,
                      std::uint64_t end, const std::string& end_name) {
  const json& value = list[index];
  const std::uint64_t minimum = previous ? *previous + min_step : 0;
  if (end > 0 && is_whole(value, {minimum, end - 1})) return value.get<std::uint64_t>();
  std::string cure = "must be a whole number ";
  if (previous) {
    cure += (min_step == 0 ? "not less than the previous, " : "greater than the previous, ") +
            std::to_string(*previous) + ", and ";
  }
  throw not_possible(value, where / index, cure + end_name);
}

}  // namespace nagi
