// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "native/flow_columns.hpp"
#include "native/python/columns.hpp"
#include "native/python/module.hpp"
#include "native/python/scan_result.hpp"

namespace nagi::captures::python {

namespace {

/// Numbers addresses by the order of their first appearance.
class Addresses {
 public:
  std::int32_t number(const std::array<std::uint64_t, 2>& address, std::uint8_t version) {
    const auto [position, is_new] = numbers_.try_emplace(
        std::tuple{address[0], address[1], version}, static_cast<std::int32_t>(texts_.size()));
    if (is_new) texts_.push_back(address_text(address, version));
    return position->second;
  }
  [[nodiscard]] nb::list texts() const {
    nb::list all;
    for (const std::string& text : texts_) all.append(text);
    return all;
  }

 private:
  std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint8_t>, std::int32_t> numbers_;
  std::vector<std::string> texts_;
};

/// Builds the requested columns (all columns if `names` is empty), and "addresses": the texts to
/// which the columns `source` and `destination` refer by index.
class FlowArrays {
 public:
  FlowArrays(const FlowRows& rows, const std::vector<std::string>& names) : rows_(rows) {
    const auto columns = flow_columns();
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (is_requested(names, columns[i].name)) requested_.push_back({i, columns[i].kind});
    }
    fill_columns();
  }

  [[nodiscard]] nb::dict columns(const std::vector<std::string>& names) {
    nb::dict all;
    const auto add = [&](const char* name, auto& values) {
      if (is_requested(names, name)) all[name] = array(std::move(values));
    };
    add("connection", connection_);
    add("direction", direction_);
    add("protocol", protocol_);
    add("source", source_);
    add("source_port", source_port_);
    add("destination", destination_);
    add("destination_port", destination_port_);
    for (RequestedColumn& column : requested_) {
      const char* name = flow_columns()[column.index].name;
      if (column.kind == Kind::whole) all[name] = array(std::move(column.whole));
      if (column.kind == Kind::real) all[name] = array(std::move(column.real));
      if (column.kind == Kind::truth) all[name] = column.truth->array();
    }
    all["addresses"] = addresses_.texts();
    return all;
  }

 private:
  struct RequestedColumn {
    std::size_t index;
    Kind kind;
    std::vector<std::int64_t> whole{};
    std::vector<double> real{};
    std::unique_ptr<Flags> truth{};
  };

  static bool is_requested(const std::vector<std::string>& names, const char* name) {
    return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
  }

  void fill_columns() {
    const std::size_t count = 2 * rows_.size();
    for (RequestedColumn& column : requested_) {
      if (column.kind == Kind::whole) column.whole.reserve(count);
      if (column.kind == Kind::real) column.real.reserve(count);
      if (column.kind == Kind::truth) column.truth = std::make_unique<Flags>(count);
    }
    FlowRows::Rows rows;
    for (std::size_t connection = 0; connection < rows_.size(); ++connection) {
      rows_.read(connection, rows);
      for (unsigned direction = 0; direction < 2; ++direction) {
        const Endpoints ends = direction == 0 ? rows.endpoints : rows.endpoints.reversed();
        connection_.push_back(static_cast<std::int64_t>(connection));
        direction_.push_back(direction);
        protocol_.push_back(ends.protocol());
        source_.push_back(addresses_.number(ends.source, ends.version()));
        source_port_.push_back(ntohs(ends.source_port()));
        destination_.push_back(addresses_.number(ends.destination, ends.version()));
        destination_port_.push_back(ntohs(ends.destination_port()));
        for (RequestedColumn& column : requested_) {
          const std::int64_t value = rows.values[direction][column.index];
          if (column.kind == Kind::whole) column.whole.push_back(value);
          if (column.kind == Kind::real) column.real.push_back(std::bit_cast<double>(value));
          if (column.kind == Kind::truth) column.truth->push_back(value != 0);
        }
      }
    }
  }

  const FlowRows& rows_;
  std::vector<RequestedColumn> requested_;
  Addresses addresses_;
  std::vector<std::int64_t> connection_;
  std::vector<std::int64_t> direction_;
  std::vector<std::uint8_t> protocol_;
  std::vector<std::int32_t> source_;
  std::vector<std::int64_t> source_port_;
  std::vector<std::int32_t> destination_;
  std::vector<std::int64_t> destination_port_;
};

nb::dict series_columns(std::vector<EndedConnections::Interval> rows, std::int64_t origin_ns,
                        std::int64_t interval_ns) {
  using Row = EndedConnections::Interval;
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.flow < b.flow; });
  Table<Row> table(std::move(rows));
  table.add("flow", [](const Row& row) { return row.flow; });
  table.add("start_ns", [=](const Row& row) { return origin_ns + row.row.index * interval_ns; });
  table.add("payload_bytes", [](const Row& row) { return row.row.payload_bytes; });
  table.add("first_time_bytes", [](const Row& row) { return row.row.first_time_bytes; });
  table.add("retransmitted_packets", [](const Row& row) { return row.row.retransmitted_packets; });
  table.add("in_flight_max_bytes", [](const Row& row) {
    return number_or_nan(row.row.max_in_flight >= 0, row.row.max_in_flight);
  });
  table.add("rtt_mean_ns", [](const Row& row) {
    return row.row.rtt_count == 0 ? nan : row.row.rtt_sum / static_cast<double>(row.row.rtt_count);
  });
  table.add("rtt_max_ns",
            [](const Row& row) { return number_or_nan(row.row.rtt_count != 0, row.row.max_rtt); });
  table.add("window_bytes",
            [](const Row& row) { return number_or_nan(row.row.window >= 0, row.row.window); });
  return table.columns();
}

}  // namespace

nb::dict scan(const nb::bytes& path, std::optional<std::int64_t> start_ns,
              std::optional<std::int64_t> end_ns, std::int64_t interval_ns, bool relative,
              const std::vector<std::string>& columns, bool tunnels) {
  ScanRequest request = make_request(start_ns, end_ns, relative, tunnels);
  request.options.interval_ns = interval_ns;
  ScanResult scanned;
  std::optional<FlowArrays> table;
  {
    const std::string name(path.c_str(), path.size());
    const nb::gil_scoped_release free;
    scan_file(name, request, scanned);
    table.emplace(scanned.connections.rows, columns);
  }
  nb::dict result = totals_to_dict(scanned);
  result["flows"] = table->columns(columns);
  if (interval_ns != 0) {
    result["series"] =
        series_columns(std::move(scanned.connections.series), scanned.origin_ns, interval_ns);
  }
  return result;
}

}  // namespace nagi::captures::python
