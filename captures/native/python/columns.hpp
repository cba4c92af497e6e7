// SPDX-License-Identifier: Apache-2.0
//
// Converts tables to NumPy arrays. An array takes over the memory of a C++ vector without a copy.
#pragma once

#include <arpa/inet.h>

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "native/decode.hpp"
#include "native/python/nanobind.hpp"

namespace nagi::captures::python {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Return a column as a NumPy array, without a copy.
template <typename T>
nb::object array(std::vector<T>&& values) {
  auto owned = std::make_unique<std::vector<T>>(std::move(values));
  T* data = owned->data();
  const std::size_t size = owned->size();
  nb::capsule owner(owned.release(),
                    [](void* vector) noexcept { delete static_cast<std::vector<T>*>(vector); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {size}, owner));
}

/// A column of truth values. NumPy cannot take over the memory of a std::vector<bool>.
class Flags {
 public:
  explicit Flags(std::size_t max_size) : values_(std::make_unique<bool[]>(max_size)) {}
  void push_back(bool value) { values_[size_++] = value; }
  nb::object array() {
    bool* data = values_.release();
    nb::capsule owner(data, [](void* vector) noexcept { delete[] static_cast<bool*>(vector); });
    return nb::cast(nb::ndarray<nb::numpy, bool, nb::ndim<1>>(data, {size_}, owner));
  }

 private:
  std::unique_ptr<bool[]> values_;
  std::size_t size_ = 0;
};

/// Builds the columns of a table from its rows.
template <typename Row>
class Table {
 public:
  explicit Table(std::vector<Row> rows) : rows_(std::move(rows)) {}

  /// Add a column; `value` is a function that computes its value from a row.
  template <typename Value>
  void add(const char* name, Value value) {
    using T = std::decay_t<decltype(value(rows_[0]))>;
    if constexpr (std::is_same_v<T, bool>) {
      Flags flags(rows_.size());
      for (const Row& row : rows_) flags.push_back(value(row));
      columns_[name] = flags.array();
    } else if constexpr (std::is_same_v<T, std::string>) {
      nb::list texts;
      for (const Row& row : rows_) texts.append(value(row));
      columns_[name] = texts;
    } else {
      std::vector<T> values;
      values.reserve(rows_.size());
      for (const Row& row : rows_) values.push_back(value(row));
      columns_[name] = array(std::move(values));
    }
  }
  [[nodiscard]] nb::dict columns() const { return columns_; }

 private:
  std::vector<Row> rows_;
  nb::dict columns_;
};

/// Return an IP address as text.
std::string address_text(const std::array<std::uint64_t, 2>& address, std::uint8_t version);

/// Add the columns of protocol, addresses and ports; `endpoints` returns the endpoints of a row.
template <typename Row, typename Get>
void add_endpoints(Table<Row>& table, Get endpoints) {
  table.add("protocol", [=](const Row& row) {
    return std::string(endpoints(row).protocol() == protocol_tcp ? "tcp" : "udp");
  });
  table.add("source", [=](const Row& row) {
    return address_text(endpoints(row).source, endpoints(row).version());
  });
  table.add("source_port",
            [=](const Row& row) { return std::int64_t{ntohs(endpoints(row).source_port())}; });
  table.add("destination", [=](const Row& row) {
    return address_text(endpoints(row).destination, endpoints(row).version());
  });
  table.add("destination_port",
            [=](const Row& row) { return std::int64_t{ntohs(endpoints(row).destination_port())}; });
}

inline double number_or_nan(bool is_known, std::int64_t value) {
  return is_known ? static_cast<double>(value) : nan;
}

}  // namespace nagi::captures::python
