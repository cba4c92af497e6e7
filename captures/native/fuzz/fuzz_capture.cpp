// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the capture reader. Any file is either refused with a CaptureError, or read until its end
// or until the damage. The counts of its connections are consistent, also if the file is compared
// with itself.
#include <cstdlib>
#include <memory>
#include <vector>

#include "native/flow_columns.hpp"
#include "native/flows.hpp"
#include "native/match.hpp"
#include "native/scan.hpp"

namespace {

using namespace nagi::captures;

void require(bool condition) {
  if (!condition) std::abort();
}

void scan(const std::uint8_t* data, std::size_t size) {
  CaptureFile file(data, size);
  std::int64_t packets = 0;
  std::uint32_t ended = 0;
  const auto check = [&](const Connection& connection) {
    ++ended;
    for (const auto& pointer : connection.directions) {
      if (!pointer) continue;
      const Direction& direction = *pointer;
      packets += direction.counts.packets + direction.captured_twice;
      for (const Counts& counts : {direction.counts, direction.inside()}) {
        require(counts.first_time_bytes >= 0);
        require(counts.first_time_bytes <= counts.payload_bytes);
        require(counts.retransmitted_packets + counts.out_of_order_packets <= counts.data_packets);
      }
      std::int64_t in_series = 0;
      std::int64_t last = std::numeric_limits<std::int64_t>::min();
      for (const SeriesRow& row : direction.series) {
        in_series += row.payload_bytes;
        require(row.index > last);
        last = row.index;
      }
      require(in_series == direction.counts.payload_bytes);
      if (const auto& rtt = direction.rtt_sequence) {
        require(rtt->min() <= rtt->quantile(0.5) && rtt->quantile(0.5) <= rtt->max());
      }
    }
  };
  FlowRows rows;
  Engine engine({.start_ns = 1'000'000'000, .end_ns = 2'000'000'000, .interval_ns = 1'000'000},
                [&](const Connection& connection) {
                  check(connection);
                  rows.add(connection);
                });
  Totals totals;
  Decoder decoder(size % 2 == 0);
  while (scan_some(file, decoder, engine, totals, 1000)) {
  }
  engine.finish();
  require(totals.packets == static_cast<std::int64_t>(file.records()));
  require(ended == engine.count() && rows.size() == ended);
  for (const std::int64_t unused : totals.unused) packets += unused;
  require(packets == totals.packets);
}

void match(const std::uint8_t* data, std::size_t size, std::size_t second) {
  Matcher matcher(
      [=](int side) {
        return side == 0 ? std::make_unique<CaptureFile>(data, size)
                         : std::make_unique<CaptureFile>(data + second, size - second);
      },
      {.complete = size % 2 == 0});
  while (matcher.work(1000)) {
  }
  for (const MatchedConnection& connection : matcher.connections()) {
    for (const MatchedDirection& direction : connection.directions) {
      require(direction.lost <= direction.sent);
      require(direction.pattern.bursts().lost + direction.pattern.gaps().lost == direction.lost);
      require(direction.pattern.bursts().packets + direction.pattern.gaps().packets ==
              direction.sent);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    scan(data, size);
    match(data, size, 0);
  } catch (const CaptureError&) {
    return 0;
  }
  try {
    match(data, size, size / 2);  // compare with the second half, if that is a capture
  } catch (const CaptureError&) {
  }
  return 0;
}
