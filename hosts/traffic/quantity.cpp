// SPDX-License-Identifier: Apache-2.0
#include "quantity.hpp"

#include <charconv>
#include <cmath>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "io/input_error.hpp"

namespace nagi::applications {
namespace {

// From this value on, a double cannot represent every integer.
constexpr double max_value = 9007199254740992.0;

std::uint64_t parse(const std::string& text, const char* subject, const char* example,
                    std::initializer_list<std::pair<std::string_view, double>> units) {
  const std::string cure = std::string("; write a ") + subject + " such as '" + example + "'";
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || !(number >= 0)) {
    throw InputError("'" + text + "' is no " + subject + cure);
  }
  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  for (const auto& [name, size] : units) {
    if (unit != name && !unit.empty()) continue;
    const double value = unit.empty() ? number : number * size;
    if (value >= max_value) throw InputError("'" + text + "' is too large for a " + subject);
    const double rounded = std::round(value);
    if (std::abs(value - rounded) > 1e-6 * std::max(1.0, value) * 1e-6) {
      throw InputError("'" + text + "' is no whole number of " + std::string(units.begin()->first) +
                       "; round it");
    }
    return static_cast<std::uint64_t>(rounded);
  }
  throw InputError("'" + std::string(unit) + "' is no unit of a " + subject + cure);
}

}  // namespace

std::uint64_t parse_bytes(const std::string& text) {
  return parse(text, "size", "5 MB",
               {{"bytes", 1},
                {"byte", 1},
                {"B", 1},
                {"kB", 1e3},
                {"KB", 1e3},
                {"MB", 1e6},
                {"GB", 1e9},
                {"KiB", 1024.0},
                {"MiB", 1048576.0},
                {"GiB", 1073741824.0}});
}

std::uint64_t parse_duration(const std::string& text) {
  return parse(text, "duration", "40 ms",
               {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}});
}

std::uint64_t parse_rate(const std::string& text) {
  return parse(text, "rate", "1 Mb/s", {{"b/s", 1}, {"kb/s", 1e3}, {"Mb/s", 1e6}, {"Gb/s", 1e9}});
}

}  // namespace nagi::applications
