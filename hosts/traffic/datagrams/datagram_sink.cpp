// SPDX-License-Identifier: Apache-2.0
#include "datagrams/datagram_sink.hpp"

#include <vector>

#include "arithmetic/reception.hpp"
#include "datagrams/datagram.hpp"
#include "datagrams/rate_probes.hpp"

namespace nagi::applications {

using nlohmann::json;

json datagrams(const char* application, const Ends& ends, const std::string& codec,
               std::uint64_t playout_ns) {
  Waiter waiter;
  json result = result_of(application, "server");
  const io::Descriptor socket = udp_server(ends);
  Reception reception;
  ProbedEnd probed(socket.get());
  std::uint64_t received = 0;
  try {
    while (true) {
      waiter.wait(socket.get(), POLLIN);
      while (const auto found = receive_datagram(socket.get())) {
        if (found->kind != Kind::data) {
          probed.take(*found);
          continue;
        }
        reception.receive(found->number, found->sent_ns, found->received_ns);
        received += found->bytes;
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
    if (!codec.empty()) {
      const Reception::Call call =
          reception.call(g711, voice_packet_ms, static_cast<double>(playout_ns) / 1e6);
      voice = {{"codec", "G.711"},
               {"mouth_to_ear_ms", call.delay_ms},
               {"unplayed_share", call.unplayed},
               {"burst_ratio", call.burst_ratio},
               {"r_factor", call.rating},
               {"mos", call.opinion_score}};
    }
  }
  const bool has_jitter = reception.received() > 1;
  result.update({{"received_bytes", received},
                 {"packets_received", reception.received()},
                 {"packets_expected", reception.expected()},
                 {"packets_lost", reception.lost()},
                 {"duplicates", reception.duplicates()},
                 {"reordered", reception.reordered()},
                 {"one_way_delay", delay},
                 {"jitter_s", has_jitter ? json(reception.jitter_ns() / 1e9) : json()},
                 {"jitter_max_s", has_jitter ? json(reception.max_jitter_ns() / 1e9) : json()},
                 {"voice", voice},
                 {"ended", "stopped"}});
  return result;
}

}  // namespace nagi::applications
