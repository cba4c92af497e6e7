// SPDX-License-Identifier: Apache-2.0
//
// Reads a capture in one pass, for scan.cpp and rows.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "native/flow_columns.hpp"
#include "native/flows.hpp"
#include "native/python/nanobind.hpp"
#include "native/scan.hpp"

namespace nagi::captures::python {

/// The rows and series of connections that have ended.
struct EndedConnections {
  struct Interval {
    std::int64_t flow;  // row in the table of flows: 2 x connection + direction
    SeriesRow row;
  };
  FlowRows rows;
  std::vector<Interval> series;

  void add(const Connection& connection) {
    rows.add(connection);
    for (unsigned direction = 0; direction < 2; ++direction) {
      if (!connection.directions[direction]) continue;
      for (const SeriesRow& interval : connection.directions[direction]->series) {
        series.push_back({2 * std::int64_t{connection.number} + direction, interval});
      }
    }
  }
};

/// The request for a scan.
struct ScanRequest {
  Options options;
  bool tunnels = false;
};
ScanRequest make_request(std::optional<std::int64_t> start_ns, std::optional<std::int64_t> end_ns,
                         bool relative, bool tunnels);

/// The result of a scan.
struct ScanResult {
  EndedConnections connections;
  Totals totals;
  Options measured;            // the options, with the measured interval since the epoch
  std::int64_t origin_ns = 0;  // begin of the first interval of the series
  std::string damage;
  std::int64_t frames_of_several = 0;
};

/// Scan a file. The caller must have released the interpreter lock.
void scan_file(const std::string& name, const ScanRequest& request, ScanResult& scanned);

/// Return the fields of reading.Totals.
nb::dict totals_to_dict(const ScanResult& scanned);

}  // namespace nagi::captures::python
