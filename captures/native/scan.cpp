// SPDX-License-Identifier: Apache-2.0
#include "native/scan.hpp"

#include <algorithm>

namespace nagi::captures {

bool scan_some(CaptureFile& file, Decoder& decoder, Engine& engine, Totals& totals,
               std::int64_t max_packets) {
  Record record;
  Packet packet;
  for (std::int64_t i = 0; i < max_packets; ++i) {
    if (!file.next(record)) return false;
    if (totals.packets++ == 0 && engine.options().relative)
      engine.resolve_relative_times(record.time_ns);
    totals.bytes += record.length;
    totals.first_ns = std::min(totals.first_ns, record.time_ns);
    totals.last_ns = std::max(totals.last_ns, record.time_ns);
    if (record.time_ns < totals.previous_ns) [[unlikely]] {
      ++totals.packets_back;
      totals.max_back_ns = std::max(totals.max_back_ns, totals.previous_ns - record.time_ns);
    }
    totals.previous_ns = record.time_ns;
    if (!record.has_time) [[unlikely]] {
      ++totals.packets_without_time;
    }
    const Unused unused = decoder.decode(record, packet);
    if (unused == Unused::none) [[likely]] {
      ++(packet.endpoints.protocol() == protocol_tcp ? totals.tcp : totals.udp);
      engine.add(packet);
    } else {
      ++totals.other_protocols[decoder.last_header()];
      ++totals.unused[static_cast<std::size_t>(unused)];
    }
  }
  return true;
}
}  // namespace nagi::captures
