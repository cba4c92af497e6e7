// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "applications.hpp"
#include "datagrams/datagram.hpp"
#include "datagrams/datagram_sink.hpp"
#include "datagrams/rate_probes.hpp"
#include "io/input_error.hpp"

namespace nagi::applications {

using nlohmann::json;

json cbr_client(const Ends& ends, const Cbr& settings) {
  Waiter waiter;
  json result = result_of("cbr", "client");
  const std::uint64_t payload =
      settings.codec.empty() ? settings.payload_bytes : voice_payload_bytes;
  if (payload == 0 || (settings.codec.empty() && settings.rate_bps == 0)) {
    throw InputError("the traffic is not specified; give --rate and --payload, or --codec");
  }
  if (!settings.codec.empty() && settings.search_ns > 0) {
    throw InputError("a voice call has a fixed rate; omit --search");
  }
  Datagrams sending(udp_client(ends), payload);
  std::uint64_t rate =
      settings.codec.empty() ? settings.rate_bps : 8 * voice_packets_per_s * sending.packet_bytes();
  const char* ended = "stopped";
  try {
    if (settings.search_ns > 0) {
      const RateSearch search =
          search_rate(sending, waiter, static_cast<double>(rate), settings.search_ns);
      json& probes = result["probes_bps"] = json::array();
      for (const RateProbe& probe : search.probes()) {
        probes.push_back({std::round(probe.sent_bps), std::round(probe.arrived_bps)});
      }
      rate = static_cast<std::uint64_t>(search.best_bps());
      if (rate == 0) throw std::runtime_error("no packet arrived in the search for a rate");
    }
    const double interval_ns =
        static_cast<double>(sending.packet_bytes()) * 8e9 / static_cast<double>(rate);
    const std::int64_t start = now_ns();
    const std::int64_t end = after(start, settings.duration_ns);
    while (true) {
      const double offset = static_cast<double>(sending.sent()) * interval_ns;
      const std::int64_t next = start + static_cast<std::int64_t>(offset);
      if (next >= end) break;
      waiter.sleep(next);
      sending.send(waiter);
    }
    ended = "complete";
  } catch (const Stopped&) {
    ended = "stopped";
  }
  result.update({{"payload_bytes", payload},
                 {"rate_bps", rate},
                 {"packets_sent", sending.sent()},
                 {"ended", ended}});
  return result;
}

json cbr_server(const Ends& ends, const Cbr& settings) {
  return datagrams("cbr", ends, settings.codec, settings.playout_ns);
}

}  // namespace nagi::applications
