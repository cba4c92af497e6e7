// SPDX-License-Identifier: Apache-2.0
//
// Reading and writing of configurations that describe themselves (described.hpp), as JSON.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/object_reader.hpp"
#include "model/described.hpp"

namespace nagi::model {

template <class Value>
inline constexpr bool is_optional = false;
template <class Value>
inline constexpr bool is_optional<std::optional<Value>> = true;

// Conversions between the types of members (such as Duration, Bytes, Bitrate) and plain numbers.
template <class Value, class Number>
Value value_of(Number number) {
  if constexpr (is_optional<Value>) {
    return value_of<typename Value::value_type>(number);
  } else if constexpr (std::is_same_v<Value, Duration>) {
    return Duration{static_cast<std::int64_t>(number)};
  } else {
    return Value{number};
  }
}
template <class Number>
  requires std::is_arithmetic_v<Number>
Number number_of(Number number) {
  return number;
}
inline std::int64_t number_of(Duration duration) { return duration.count(); }
inline std::uint64_t number_of(Bytes bytes) { return bytes.count; }
inline std::uint64_t number_of(Packets packets) { return packets.count; }
inline std::uint64_t number_of(Bitrate rate) { return rate.bits_per_second; }

/// Read a trace from {"steps": [[at_ns, value], ...], "period_ns": P}. Throws ConfigError.
template <class Value, class Number>
Trace<Value> read_steps(const ObjectReader& reader, Bound<Number> bound) {
  Trace<Value> trace;
  trace.period = Duration{static_cast<std::int64_t>(reader.whole("period_ns", bounds::period_ns))};
  const nlohmann::json& steps = reader.array("steps");
  const auto where = reader.at("steps");
  const auto period = static_cast<std::uint64_t>(trace.period.count());
  std::optional<std::uint64_t> previous;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const nlohmann::json& step = steps[i];
    if (!step.is_array() || step.size() != 2) {
      throw ConfigError(where / i, "not a step: " + shown(step), "write [at_ns, value]");
    }
    if (!previous && step[0] != 0) {
      throw not_possible(step[0], where / i / 0,
                         "must be 0, because a trace begins with its first step");
    }
    previous = next_in(step, 0, where / i, previous, 1, period,
                       "less than the period, " + std::to_string(period));
    trace.steps.push_back({Duration{static_cast<std::int64_t>(*previous)},
                           value_of<Value>(bounded(step[1], where / i / 1, bound))});
  }
  if (trace.steps.empty()) throw ConfigError(where, "no steps", "list at least [0, value]");
  return trace;
}

template <class Value>
nlohmann::json steps_to_json(const Trace<Value>& trace) {
  nlohmann::json steps = nlohmann::json::array();
  for (const Step<Value>& step : trace.steps) {
    steps.push_back({step.at.count(), number_of(step.value)});
  }
  return {{"steps", steps}, {"period_ns", trace.period.count()}};
}

// Each kind of field has three functions: add_keys() lists its keys, read() reads it, write()
// writes it.

template <class Config, class Value, class Number>
void add_keys(const NumberField<Config, Value, Number>& field,
              std::vector<std::string_view>& keys) {
  keys.push_back(field.key);
}
template <class Config, class Value, class Number>
void read(const NumberField<Config, Value, Number>& field, const ObjectReader& reader,
          Config& config) {
  const std::string key(field.key);
  if (!field.is_required && !reader.has(key)) return;
  if constexpr (std::is_same_v<Number, double>) {
    config.*field.member = value_of<Value>(reader.number(key, field.bound));
  } else {
    config.*field.member = value_of<Value>(reader.whole(key, field.bound));
  }
}
template <class Config, class Value, class Number>
void write(const NumberField<Config, Value, Number>& field, const Config& config,
           nlohmann::json& out) {
  const Value& value = config.*field.member;
  if constexpr (is_optional<Value>) {
    if (value) out[std::string(field.key)] = number_of(*value);
  } else {
    out[std::string(field.key)] = number_of(value);
  }
}

template <class Config>
void add_keys(const FlagField<Config>& field, std::vector<std::string_view>& keys) {
  keys.push_back(field.key);
}
template <class Config>
void read(const FlagField<Config>& field, const ObjectReader& reader, Config& config) {
  const std::string key(field.key);
  if (reader.has(key)) config.*field.member = reader.flag(key);
}
/// Write the flag only if it differs from its default.
template <class Config>
void write(const FlagField<Config>& field, const Config& config, nlohmann::json& out) {
  if (config.*field.member == Config{}.*field.member) return;
  out[std::string(field.key)] = config.*field.member;
}

/// Add a name to a list of names for messages.
inline void add_name(std::string& names, std::string_view name) {
  names += (names.empty() ? "\"" : ", \"") + std::string(name) + "\"";
}

template <class Config, class Value>
void add_keys(const ChoiceField<Config, Value>& field, std::vector<std::string_view>& keys) {
  keys.push_back(field.key);
}
template <class Config, class Value>
void read(const ChoiceField<Config, Value>& field, const ObjectReader& reader, Config& config) {
  const std::string key(field.key);
  if (!reader.has(key)) return;
  const std::string name = reader.text(key);
  std::string names;
  for (const Choice<Value>& choice : field.choices) {
    if (choice.first == name) {
      config.*field.member = choice.second;
      return;
    }
    add_name(names, choice.first);
  }
  throw ConfigError(reader.at(key), "unknown " + key + " " + shown(name), "one of " + names);
}
template <class Config, class Value>
void write(const ChoiceField<Config, Value>& field, const Config& config, nlohmann::json& out) {
  for (const Choice<Value>& choice : field.choices) {
    if (choice.second == config.*field.member) out[std::string(field.key)] = choice.first;
  }
}

template <class Config>
void add_keys(const SizeField<Config>& field, std::vector<std::string_view>& keys) {
  keys.insert(keys.end(), {field.packets_key, field.bytes_key});
}
template <class Config>
void read(const SizeField<Config>& field, const ObjectReader& reader, Config& config) {
  const std::string packets(field.packets_key);
  const std::string bytes(field.bytes_key);
  if (reader.has(packets) && reader.has(bytes)) {
    throw ConfigError(reader.at(bytes), "given together with \"" + packets + "\"",
                      "give one of the two");
  }
  if (reader.has(bytes)) {
    config.*field.member = Bytes{reader.whole(bytes, field.bytes)};
  } else {
    config.*field.member = Packets{reader.whole(packets, field.packets)};
  }
}
template <class Config>
void write(const SizeField<Config>& field, const Config& config, nlohmann::json& out) {
  if (const auto* packets = std::get_if<Packets>(&(config.*field.member))) {
    out[std::string(field.packets_key)] = packets->count;
  } else {
    out[std::string(field.bytes_key)] = std::get<Bytes>(config.*field.member).count;
  }
}

template <class Config>
void add_keys(const IncreasingField<Config>& field, std::vector<std::string_view>& keys) {
  keys.push_back(field.key);
}
template <class Config>
void read(const IncreasingField<Config>& field, const ObjectReader& reader, Config& config) {
  const std::string key(field.key);
  const nlohmann::json& list = reader.array(key);
  const std::uint64_t end = config.*field.end;
  std::optional<std::uint64_t> previous;
  for (std::size_t i = 0; i < list.size(); ++i) {
    previous = next_in(list, i, reader.at(key), previous, 1, end,
                       "less than the " + std::string(field.end_name) + ", " + std::to_string(end));
    (config.*field.member).push_back(*previous);
  }
}
template <class Config>
void write(const IncreasingField<Config>& field, const Config& config, nlohmann::json& out) {
  out[std::string(field.key)] = config.*field.member;
}

template <class Config>
void add_keys(const SortedField<Config>& field, std::vector<std::string_view>& keys) {
  keys.push_back(field.key);
}
template <class Config>
void read(const SortedField<Config>& field, const ObjectReader& reader, Config& config) {
  const std::string key(field.key);
  const nlohmann::json& list = reader.array(key);
  if (list.empty()) throw ConfigError(reader.at(key), "no numbers", "list at least one");
  Bound<double> bound = field.bound;
  for (std::size_t i = 0; i < list.size(); ++i) {
    bound.minimum = bounded(list[i], reader.at(key) / i, bound);
    (config.*field.member).push_back(bound.minimum);
  }
}
template <class Config>
void write(const SortedField<Config>& field, const Config& config, nlohmann::json& out) {
  out[std::string(field.key)] = config.*field.member;
}

template <class Config>
void add_keys(const StepsField<Config>& /*field*/, std::vector<std::string_view>& keys) {
  keys.insert(keys.end(), {"steps", "period_ns"});
}
template <class Config>
void read(const StepsField<Config>& field, const ObjectReader& reader, Config& config) {
  config.*field.member = read_steps<double>(reader, field.bound);
}
template <class Config>
void write(const StepsField<Config>& field, const Config& config, nlohmann::json& out) {
  out.update(steps_to_json(config.*field.member));
}

template <class Config, class Value>
void add_keys(const NotAbove<Config, Value>& /*field*/, std::vector<std::string_view>& /*keys*/) {}
template <class Config, class Value>
void read(const NotAbove<Config, Value>& field, const ObjectReader& reader, Config& config) {
  if (config.*field.member <= config.*field.maximum) return;
  const std::string key(field.key);
  const std::string maximum_key(field.maximum_key);
  throw ConfigError(reader.at(reader.has(key) ? key : maximum_key),
                    "\"" + key + "\" is above \"" + maximum_key + "\"",
                    "give a smaller value, or a larger \"" + maximum_key + "\"");
}
template <class Config, class Value>
void write(const NotAbove<Config, Value>& /*field*/, const Config& /*config*/,
           nlohmann::json& /*out*/) {}

template <class Config, class Value, class Chosen>
void add_keys(const OnlyWith<Config, Value, Chosen>& /*field*/,
              std::vector<std::string_view>& /*keys*/) {}
template <class Config, class Value, class Chosen>
void read(const OnlyWith<Config, Value, Chosen>& field, const ObjectReader& reader,
          Config& config) {
  if (!(config.*field.member) || config.*field.choice == field.required_value) return;
  const std::string choice =
      "\"" + std::string(field.choice_key) + "\": \"" + std::string(field.required_name) + "\"";
  throw ConfigError(reader.at(std::string(field.key)), "given without " + choice,
                    "remove it, or give " + choice);
}
template <class Config, class Value, class Chosen>
void write(const OnlyWith<Config, Value, Chosen>& /*field*/, const Config& /*config*/,
           nlohmann::json& /*out*/) {}

/// Read an object with the fields of `Config`. The object may also have the keys `other_keys`,
/// which the caller reads. Throws ConfigError.
template <class Config>
Config read_described(ObjectReader& reader, std::vector<std::string_view> other_keys = {}) {
  std::vector<std::string_view>& keys = other_keys;
  std::apply([&keys](const auto&... fields) { (add_keys(fields, keys), ...); }, Config::fields());
  reader.only(keys);
  Config config;
  std::apply([&](const auto&... fields) { (read(fields, reader, config), ...); }, Config::fields());
  return config;
}

/// Return the fields of a configuration as a JSON object.
template <class Config>
nlohmann::json describe(const Config& config) {
  nlohmann::json out = nlohmann::json::object();
  std::apply([&](const auto&... fields) { (write(fields, config, out), ...); }, Config::fields());
  return out;
}

/// The key whose value names the kind of an object, such as "model" of a loss model.
struct Tag {
  std::string key;
  std::string subject;       // name of these kinds in messages, such as "loss model"
  bool has_default = false;  // a missing key means the first kind
};

template <class Kind>
concept Named = requires { Kind::name; };

/// Read an object of one of the kinds of `Variant`. The object may also have the keys `other_keys`,
/// which the caller reads. Throws ConfigError.
template <class Variant>
Variant read_one_of(ObjectReader& reader, const Tag& tag,
                    const std::vector<std::string_view>& other_keys = {}) {
  Variant config;
  bool is_known = false;
  const bool is_default = tag.has_default && !reader.has(tag.key);
  const std::string name = is_default ? "" : reader.text(tag.key);
  std::string names;
  std::vector<std::string_view> keys = other_keys;
  keys.push_back(tag.key);
  const auto try_kind = [&]<class Kind>(std::type_identity<Kind>) {
    if constexpr (Named<Kind>) {
      const bool is_first = names.empty();
      add_name(names, Kind::name);
      if (is_default ? is_first : name == Kind::name) {
        config = read_described<Kind>(reader, keys);
        is_known = true;
      }
    }
  };
  [&try_kind]<class... Kinds>(std::type_identity<std::variant<Kinds...>>) {
    (try_kind(std::type_identity<Kinds>{}), ...);
  }(std::type_identity<Variant>{});
  if (!is_known) {
    throw ConfigError(reader.at(tag.key), "unknown " + tag.subject + " " + shown(name),
                      "one of " + names);
  }
  return config;
}

/// Return a configuration as a JSON object, or null for a kind without a name. The tag is omitted
/// if the kind is the default.
template <class Variant>
nlohmann::json describe_one_of(const Variant& config, const Tag& tag) {
  return std::visit(
      [&]<class Kind>(const Kind& chosen) -> nlohmann::json {
        if constexpr (Named<Kind>) {
          nlohmann::json out = describe(chosen);
          if (!tag.has_default || config.index() != 0) out[tag.key] = Kind::name;
          return out;
        }
        return nullptr;
      },
      config);
}

}  // namespace nagi::model
