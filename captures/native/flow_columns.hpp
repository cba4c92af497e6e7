// SPDX-License-Identifier: Apache-2.0
//
// Stores connections as rows of a table: one row per direction, one column per number.
// nagi_captures/flow_columns.py explains the columns.
//
// Rows are compressed, because most numbers are zero or small: one bit says whether a number is
// stored, and an integer takes only as many bytes as necessary. A connection of a few packets takes
// about 200 bytes, a connection with only a SYN about 60 bytes.
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

/// The type of a column: whole numbers, real numbers, or truth values.
enum class Kind : std::uint8_t { whole, real, truth };

struct Column {
  const char* name;
  Kind kind;
  // A function that computes the value for one direction. A real number is returned as its bits; it
  // is NaN if it is unknown.
  std::int64_t (*value)(const Connection& connection, unsigned direction, const Direction& its);
};

/// Return all columns, without the numbers of connection and direction and without the endpoints.
std::span<const Column> flow_columns();

/// Rows of connections, which are added in any order and read by their numbers.
class FlowRows {
 public:
  /// The two rows of one connection.
  struct Rows {
    Endpoints endpoints;                              // of direction 0
    std::array<std::vector<std::int64_t>, 2> values;  // by direction, in order of flow_columns()
  };

  void add(const Connection& connection);
  /// Return one more than the highest number of a connection that has rows.
  [[nodiscard]] std::size_t size() const { return slots_.size(); }
  /// Read the rows of the connection with a number, which must have been added.
  void read(std::size_t number, Rows& rows) const;
  /// Return the bytes in use.
  [[nodiscard]] std::size_t bytes() const;

 private:
  struct Slot {
    std::uint32_t chunk = 0;
    std::uint32_t offset = 0;
  };
  static constexpr std::size_t chunk_bytes = 1 << 18;

  std::deque<std::vector<std::uint8_t>> chunks_;
  std::vector<Slot> slots_;           // by number of the connection
  std::vector<std::uint8_t> packed_;  // working memory of add()
};

}  // namespace nagi::captures
