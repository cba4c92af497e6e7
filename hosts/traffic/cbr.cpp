// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "applications.hpp"
#include "arithmetic/reception.hpp"
#include "datagram.hpp"
#include "io/input_error.hpp"

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
  Datagrams datagrams(udp_client(ends), payload);
  const double interval_ns =
      static_cast<double>(payload + udp_headers) * 8e9 / static_cast<double>(rate);
  const std::int64_t start = now_ns();
  const std::int64_t end = after(start, settings.duration_ns);
  const char* ended = "stopped";
  try {
    while (true) {
      const double offset = static_cast<double>(datagrams.sent()) * interval_ns;
      const std::int64_t next = start + static_cast<std::int64_t>(offset);
      if (next >= end) break;
      waiter.sleep(next);
      datagrams.send(waiter);
    }
    ended = "complete";
  } catch (const Stopped&) {
    ended = "stopped";
  }
  result.update({{"payload_bytes", payload},
                 {"rate_bps", rate},
                 {"packets_sent", datagrams.sent()},
                 {"ended", ended}});
  return result;
}

json cbr_server(const Ends& ends, const Cbr& settings) {
  Waiter waiter;
  json result = result_of("cbr", "server");
  const io::Descriptor socket = udp_server(ends);
  Reception reception;
  try {
    while (true) {
      waiter.wait(socket.get(), POLLIN);
      while (const auto found = receive_datagram(socket.get())) {
        reception.receive(found->number, found->sent_ns, found->received_ns);
      }
    }
  } catch (const Stopped&) {
  }
  const std::vector<std::int64_t> delays = reception.delays();
  const auto quantile = [&delays](double share) {
    const double place = share * static_cast<double>(delays.size() - 1);
    return seconds(delays[static_cast<std::size_t>(place + 0.5)]);
  };
  json delay;
  json voice;
  if (!delays.empty()) {
    double sum = 0;
    for (const std::int64_t each : delays) sum += static_cast<double>(each);
    delay = {{"min_s", seconds(delays.front())},
             {"mean_s", sum / static_cast<double>(delays.size()) / 1e9},
             {"median_s", quantile(0.5)},
             {"p95_s", quantile(0.95)},
             {"p99_s", quantile(0.99)},
             {"max_s", seconds(delays.back())}};
    if (!settings.codec.empty()) {
      const Reception::Call call =
          reception.call(g711, voice_packet_ms, static_cast<double>(settings.playout_ns) / 1e6);
      voice = {{"codec", "G.711"},
               {"mouth_to_ear_ms", call.delay_ms},
               {"unplayed_share", call.unplayed},
               {"burst_ratio", call.burst_ratio},
               {"r_factor", call.rating},
               {"mos", call.opinion_score}};
    }
  }
  result.update(
      {{"packets_received", reception.received()},
       {"packets_expected", reception.expected()},
       {"packets_lost", reception.lost()},
       {"duplicates", reception.duplicates()},
       {"reordered", reception.reordered()},
       {"one_way_delay", delay},
       {"jitter_s", reception.received() < 2 ? json() : json(reception.jitter_ns() / 1e9)},
       {"jitter_max_s", reception.received() < 2 ? json() : json(reception.max_jitter_ns() / 1e9)},
       {"voice", voice},
       {"ended", "stopped"}});
  return result;
}

}  // namespace nagi::applications
