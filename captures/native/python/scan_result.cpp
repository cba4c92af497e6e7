// SPDX-License-Identifier: Apache-2.0
#include "native/python/scan_result.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "native/capture_file.hpp"
#include "native/decode.hpp"
#include "native/python/signals.hpp"

namespace nagi::captures::python {

namespace {

/// Return name of the protocol -> number of packets, with the most frequent protocol first.
nb::dict count_by_protocol(const Totals& totals) {
  std::map<std::string, std::int64_t> counts;  // several protocol numbers may have one name
  if (totals.tcp != 0) counts["TCP"] = totals.tcp;
  if (totals.udp != 0) counts["UDP"] = totals.udp;
  for (const auto& [header, count] : totals.other_protocols) counts[protocol_name(header)] += count;
  std::vector<std::pair<std::string, std::int64_t>> ordered(counts.begin(), counts.end());
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  nb::dict all;
  for (const auto& [name, count] : ordered) all[name.c_str()] = count;
  return all;
}

}  // namespace

ScanRequest make_request(std::optional<std::int64_t> start_ns, std::optional<std::int64_t> end_ns,
                         bool relative, bool tunnels) {
  ScanRequest request;
  if (start_ns) request.options.start_ns = *start_ns;
  if (end_ns) request.options.end_ns = *end_ns;
  request.options.relative = relative;
  request.tunnels = tunnels;
  return request;
}

void scan_file(const std::string& name, const ScanRequest& request, ScanResult& scanned) {
  Engine engine(request.options,
                [&](const Connection& connection) { scanned.connections.add(connection); });
  CaptureFile file(name);
  Decoder decoder(request.tunnels);
  while (scan_some(file, decoder, engine, scanned.totals, packets_between_signals)) check_signals();
  engine.finish();
  scanned.damage = file.damage();
  scanned.frames_of_several = decoder.frames_of_several();
  scanned.measured = engine.options();
  scanned.origin_ns = engine.origin_ns();
}

nb::dict totals_to_dict(const ScanResult& scanned) {
  const Totals& totals = scanned.totals;
  nb::dict result;
  result["packets"] = totals.packets;
  result["bytes"] = totals.bytes;
  result["first_ns"] = totals.packets == 0 ? 0 : totals.first_ns;
  result["last_ns"] = totals.packets == 0 ? 0 : totals.last_ns;
  result["packets_back"] = totals.packets_back;
  result["max_back_ns"] = totals.max_back_ns;
  result["packets_without_time"] = totals.packets_without_time;
  const auto bound = [](std::int64_t time_ns, std::int64_t open) -> nb::object {
    return time_ns == open ? nb::none() : nb::cast(time_ns);
  };
  result["start_ns"] = bound(scanned.measured.start_ns, Options{}.start_ns);
  result["end_ns"] = bound(scanned.measured.end_ns, Options{}.end_ns);
  result["damage"] = scanned.damage;
  result["frames_of_several"] = scanned.frames_of_several;
  nb::dict unused;
  for (std::size_t reason = 1; reason < unused_reasons; ++reason) {
    if (totals.unused[reason] != 0) unused[unused_names[reason]] = totals.unused[reason];
  }
  result["unused"] = unused;
  result["contents"] = count_by_protocol(totals);
  return result;
}

}  // namespace nagi::captures::python
