// SPDX-License-Identifier: Apache-2.0
#include "applications.hpp"
#include "datagram.hpp"
#include "io/input_error.hpp"
#include "sink.hpp"

namespace nagi::applications {

using nlohmann::json;

json cbr_client(const Ends& ends, const Cbr& settings) {
  Waiter waiter;
  json result = result_of("cbr", "client");
  const std::uint64_t payload =
      settings.codec.empty() ? settings.payload_bytes : voice_payload_bytes;
  const std::uint64_t rate = settings.codec.empty() ? settings.rate_bps : voice_rate_bps;
  if (payload == 0 || rate == 0) {
    throw InputError("what is sent is not said; give --rate and --payload, or --codec");
  }
  Datagrams sending(udp_client(ends), payload);
  const double interval_ns =
      static_cast<double>(payload + udp_headers) * 8e9 / static_cast<double>(rate);
  const std::int64_t start = now_ns();
  const std::int64_t end = after(start, settings.duration_ns);
  const char* ended = "stopped";
  try {
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
