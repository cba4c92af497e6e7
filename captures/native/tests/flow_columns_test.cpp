// SPDX-License-Identifier: Apache-2.0
#include "native/flow_columns.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>

namespace nagi::captures {
namespace {

std::int64_t value(const FlowRows::Rows& rows, unsigned direction, const std::string& name) {
  const auto columns = flow_columns();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (name == columns[i].name) return rows.values[direction][i];
  }
  ADD_FAILURE() << name;
  return 0;
}

TEST(FlowRows, GiveWhatWasAdded) {
  FlowRows kept;
  for (const std::uint32_t number : {2U, 0U, 1U}) {  // in any order
    Connection connection;
    connection.number = number;
    connection.endpoints.source = {std::uint64_t{0x0102030405060708} + number, ~std::uint64_t{0}};
    connection.endpoints.set_rest(0xffff0001, protocol_tcp, 6);
    if (number != 1) {
      connection.directions[1] = std::make_unique<Direction>();
      Direction& its = *connection.directions[1];
      its.first_ns = -5;
      its.counts.ip_bytes = std::int64_t{1} << 60;
      its.sack_permitted = true;
      its.window.add(100);
      its.window.add(201);
    }
    kept.add(connection);
  }
  ASSERT_EQ(kept.size(), 3);
  FlowRows::Rows rows;
  for (std::size_t number : {0U, 1U, 2U}) {
    kept.read(number, rows);
    EXPECT_EQ(rows.endpoints.source[0], 0x0102030405060708 + number);
    EXPECT_EQ(rows.endpoints.source[1], ~std::uint64_t{0});
    EXPECT_EQ(rows.endpoints.rest, 0xffff0001 | std::uint64_t{6} << 32 | std::uint64_t{6} << 40);
    EXPECT_EQ(value(rows, 0, "packets"), 0);
    EXPECT_EQ(value(rows, 0, "mss"), -1);
    const bool there = number != 1;
    EXPECT_EQ(value(rows, 1, "first_ns"), there ? -5 : 0);
    EXPECT_EQ(value(rows, 1, "ip_bytes"), there ? std::int64_t{1} << 60 : 0);
    EXPECT_EQ(value(rows, 1, "sack_permitted"), there ? 1 : 0);
    const auto mean = std::bit_cast<double>(value(rows, 1, "window_mean_bytes"));
    EXPECT_TRUE(there ? mean == 150.5 : std::isnan(mean));
    EXPECT_TRUE(std::isnan(std::bit_cast<double>(value(rows, 1, "rtt_sequence_mean_ns"))));
  }
}

}  // namespace
}  // namespace nagi::captures
