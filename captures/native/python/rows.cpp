// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "native/flow_columns.hpp"
#include "native/python/columns.hpp"
#include "native/python/module.hpp"
#include "native/python/scan_result.hpp"

namespace nagi::captures::python {

namespace {

/// Return the row of one direction as a dict, name of the column -> value; None if it is unknown.
nb::dict row_to_dict(const FlowRows::Rows& rows, std::size_t connection, unsigned direction) {
  constexpr std::array capture_points = {"", "source", "between", "destination"};
  const Endpoints ends = direction == 0 ? rows.endpoints : rows.endpoints.reversed();
  nb::dict row;
  row["connection"] = connection;
  row["direction"] = direction;
  row["protocol"] = ends.protocol() == protocol_tcp ? "tcp" : "udp";
  row["source"] = address_text(ends.source, ends.version());
  row["source_port"] = ntohs(ends.source_port());
  row["destination"] = address_text(ends.destination, ends.version());
  row["destination_port"] = ntohs(ends.destination_port());
  const auto columns = flow_columns();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::int64_t value = rows.values[direction][i];
    const char* name = columns[i].name;
    if (columns[i].kind == Kind::truth) {
      row[name] = value != 0;
    } else if (columns[i].kind == Kind::whole) {
      row[name] = value;
    } else {
      const auto real = std::bit_cast<double>(value);
      row[name] = std::isnan(real) ? nb::none() : nb::cast(real);
    }
  }
  row["captured_at"] = capture_points[static_cast<std::size_t>(nb::cast<int>(row["captured_at"]))];
  return row;
}

}  // namespace

nb::dict rows(const nb::bytes& path, std::optional<std::int64_t> start_ns,
              std::optional<std::int64_t> end_ns, bool relative, bool tunnels,
              const std::string& by, std::size_t limit) {
  ScanResult scanned;
  std::vector<std::pair<std::int64_t, std::size_t>> order;
  FlowRows::Rows rows;
  {
    const std::string name(path.c_str(), path.size());
    const nb::gil_scoped_release free;
    scan_file(name, make_request(start_ns, end_ns, relative, tunnels), scanned);
    const auto columns = flow_columns();
    const auto column = static_cast<std::size_t>(
        std::find_if(columns.begin(), columns.end(),
                     [&](const Column& candidate) { return by == candidate.name; }) -
        columns.begin());
    if (column == columns.size() || columns[column].kind != Kind::whole) {
      throw std::invalid_argument("no column of whole numbers: " + by);
    }
    for (std::size_t connection = 0; connection < scanned.connections.rows.size(); ++connection) {
      scanned.connections.rows.read(connection, rows);
      order.emplace_back(-std::max(rows.values[0][column], rows.values[1][column]), connection);
    }
    limit = std::min(limit, order.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(limit),
                      order.end());
  }
  nb::list all;
  for (std::size_t i = 0; i < limit; ++i) {
    scanned.connections.rows.read(order[i].second, rows);
    for (unsigned direction = 0; direction < 2; ++direction) {
      all.append(row_to_dict(rows, order[i].second, direction));
    }
  }
  nb::dict result = totals_to_dict(scanned);
  result["connections"] = order.size();
  result["rows"] = all;
  return result;
}

}  // namespace nagi::captures::python
