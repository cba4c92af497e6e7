// SPDX-License-Identifier: Apache-2.0
//
// Connections as rows of a table: a row a direction, a column a number. What each column is, is
// said in nagi_captures/flow_columns.py.
//
// Rows are kept packed, as most of their numbers are zero or small: a bit says whether a number is
// there, and a whole one takes as many bytes as it needs. A connection of some packets takes about
// 200 bytes, one that is a SYN only about 60.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <span>
#include <vector>

#include "native/flows.hpp"

namespace nagi::captures {

enum class Kind : std::uint8_t { whole, real, truth };

struct Column {
  const char* name;
  Kind kind;
  // Of a real number its bits. NaN: not known.
  std::int64_t (*value)(const Connection& connection, unsigned direction, const Direction& its);
};

std::span<const Column> flow_columns();

/// Rows of connections, added in any order and read by their numbers.
class FlowRows {
 public:
  /// What one connection's rows hold, in the order of flow_columns().
  struct Rows {
    Endpoints endpoints;  // of direction 0
    std::array<std::vector<std::int64_t>, 2> values;
  };

  void add(const Connection& connection);
  /// Connections of which rows are there: numbers below this.
  [[nodiscard]] std::size_t size() const { return places_.size(); }
  void read(std::size_t number, Rows& rows) const;
  /// Bytes in use.
  [[nodiscard]] std::size_t bytes() const;

 private:
  struct Place {
    std::uint32_t chunk = 0;
    std::uint32_t offset = 0;
  };
  static constexpr std::size_t chunk_bytes = 1 << 18;

  std::deque<std::vector<std::uint8_t>> chunks_;
  std::vector<Place> places_;  // by number
  std::vector<std::uint8_t> packed_;
};

}  // namespace nagi::captures
