// SPDX-License-Identifier: Apache-2.0
//
// The functions of the module nagi_captures_native, one per file of this folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "native/clock_curve.hpp"
#include "native/python/nanobind.hpp"

namespace nagi::captures::python {

/// Scan a capture. Return its totals, "flows" with the given columns (all columns if the list is
/// empty), and "series" if `interval_ns` is not 0.
nb::dict scan(const nb::bytes& path, std::optional<std::int64_t> start_ns,
              std::optional<std::int64_t> end_ns, std::int64_t interval_ns, bool relative,
              const std::vector<std::string>& columns, bool tunnels);

/// Scan a capture. Return its totals, "connections" (their number), and "rows": the rows of those
/// `limit` connections with the largest values in column `by`, which must be of whole numbers. The
/// larger value of the two directions counts.
nb::dict rows(const nb::bytes& path, std::optional<std::int64_t> start_ns,
              std::optional<std::int64_t> end_ns, bool relative, bool tunnels,
              const std::string& by, std::size_t limit);

/// Return the trace of one direction of a connection (trace.hpp), as tables of columns.
nb::dict trace(const nb::bytes& path, std::uint32_t connection, unsigned direction, bool tunnels);

/// Compare two captures of one path (match.hpp). Return the tables "flows" and "runs", "damage",
/// and the smallest delays.
nb::dict match(const nb::bytes& sent, const nb::bytes& received,
               std::optional<std::int64_t> start_ns, std::optional<std::int64_t> end_ns,
               bool complete, std::vector<ClockCurve::Knot> sent_clock,
               std::vector<ClockCurve::Knot> received_clock);

/// Add the class PacketReader, which returns the packets of a file in blocks of rows.
void add_packet_reader(nb::module_& module);

}  // namespace nagi::captures::python
