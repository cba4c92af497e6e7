// SPDX-License-Identifier: Apache-2.0
#include "datagrams/datagram_sink.hpp"

#include <vector>

#include "datagrams/datagram.hpp"

namespace nagi::applications {

using nlohmann::json;

void DatagramSink::take_all() {
  while (const auto datagram = receive_datagram(socket_)) {
    if (datagram->kind != Kind::data) {
      probed_.take(*datagram);
      continue;
    }
    reception_.receive(datagram->number, datagram->sent_ns, datagram->received_ns);
    received_bytes_ += datagram->bytes;
  }
}

json DatagramSink::summarise(const std::string& codec, std::uint64_t playout_ns) const {
  const std::vector<std::int64_t> delays = reception_.delays();
  const auto quantile = [&delays](double share) {
    const double position = share * static_cast<double>(delays.size() - 1);
    return seconds(delays[static_cast<std::size_t>(position + 0.5)]);
  };
  json delay;
  json voice;
  if (!delays.empty()) {
    double sum = 0;
    for (const std::int64_t delay_ns : delays) sum += static_cast<double>(delay_ns);
    delay = {{"min_s", seconds(delays.front())},
             {"mean_s", sum / static_cast<double>(delays.size()) / 1e9},
             {"median_s", quantile(0.5)},
             {"p95_s", quantile(0.95)},
             {"p99_s", quantile(0.99)},
             {"max_s", seconds(delays.back())}};
    if (!codec.empty()) {
      const Reception::Call call =
          reception_.call(g711, voice_packet_ms, static_cast<double>(playout_ns) / 1e6);
      voice = {{"codec", "G.711"},
               {"mouth_to_ear_ms", call.delay_ms},
               {"unplayed_share", call.unplayed},
               {"burst_ratio", call.burst_ratio},
               {"r_factor", call.rating},
               {"mos", call.opinion_score}};
    }
  }
  const bool has_jitter = reception_.received() > 1;
  return {{"received_bytes", received_bytes_},
          {"packets_received", reception_.received()},
          {"packets_expected", reception_.expected()},
          {"packets_lost", reception_.lost()},
          {"duplicates", reception_.duplicates()},
          {"reordered", reception_.reordered()},
          {"one_way_delay", delay},
          {"jitter_s", has_jitter ? json(reception_.jitter_ns() / 1e9) : json()},
          {"jitter_max_s", has_jitter ? json(reception_.max_jitter_ns() / 1e9) : json()},
          {"voice", voice}};
}

json datagrams(const char* application, const Ends& ends, const std::string& codec,
               std::uint64_t playout_ns) {
  Waiter waiter;
  json result = result_of(application, "server");
  const io::Descriptor socket = udp_server(ends);
  DatagramSink sink(socket.get());
  try {
    while (true) {
      waiter.wait(socket.get(), POLLIN);
      sink.take_all();
    }
  } catch (const Stopped&) {
  }
  result.update(sink.summarise(codec, playout_ns));
  result["ended"] = "stopped";
  return result;
}

}  // namespace nagi::applications
