// SPDX-License-Identifier: Apache-2.0
//
// UDP over a chain of stations, in nagi's model of a medium alone. A station forwards a packet at
// the instant of its arrival. The program reads settings (JSON: medium, seed, hops, warmup_ns,
// duration_ns and udp, as ns3_chain.py writes them) and prints results in the format of chain.cpp.
// It simulates hours within seconds.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/medium/medium.hpp"
#include "model/medium/medium_json.hpp"

namespace {

using nlohmann::json;
using namespace nagi;
using namespace nagi::model;

constexpr std::uint64_t udp_headers = 28;
constexpr const char* kinds[] = {"", "RTS", "CTS", "DATA", "ACK"};
constexpr const char* outcomes[] = {"received",        "channel_error", "collided",
                                    "hidden_terminal", "receiver_busy", "out_of_reach",
                                    "not_answered"};

class Chain {
 public:
  explicit Chain(const json& settings)
      : medium_(read_medium({settings.at("medium"), json::json_pointer("/medium")}, {}, {}),
                settings.at("seed"), 0),
        last_(settings.at("hops")),
        warmup_(Duration{settings.at("warmup_ns").get<std::int64_t>()}),
        end_(Duration{settings.at("duration_ns").get<std::int64_t>()}) {
    const json& udp = settings.at("udp");
    payload_ = udp.at("payload_bytes");
    interval_ = Duration{static_cast<std::int64_t>(static_cast<double>(payload_) * 8e9 /
                                                   udp.at("payload_bps").get<double>())};
    given_up_.resize(last_ + 1);
  }

  json run() {
    for (Instant next{}; medium_.now() < end_;) {
      const auto delivery = medium_.next_delivery();
      if (delivery && *delivery < next) {
        medium_.advance(std::min(*delivery, end_), events_);
      } else {
        offer(0, next);
        next += interval_;
      }
      forward_packets();
    }
    const double seconds = std::chrono::duration<double>(end_ - warmup_).count();
    return {{"goodput_bps", static_cast<double>(received_ * payload_) * 8 / seconds},
            {"outcomes", outcomes_},
            {"given_up", given_up_}};
  }

 private:
  void offer(StationIndex from, Instant at) {
    Packet packet;
    packet.size = Bytes{payload_ + udp_headers};
    packet.next_hop = from + 1;
    medium_.offer(from, packet, at, events_);
  }
  /// Forward the packets that stations have received, and count the results of the model.
  void forward_packets() {
    while (!events_.deliveries.empty()) {
      const auto deliveries = std::exchange(events_.deliveries, {});
      for (const MediumEvents::Delivery& event : deliveries) {
        if (event.to != last_) {
          offer(event.to, event.at);
        } else if (event.at >= warmup_) {
          ++received_;
        }
      }
    }
    for (const AirFrame& frame : events_.frames) {
      if (frame.start < warmup_) continue;
      json& count =
          outcomes_[std::to_string(frame.from) + ">" + std::to_string(frame.to)]
                   [kinds[static_cast<int>(frame.kind)]][outcomes[static_cast<int>(frame.outcome)]];
      count = count.is_null() ? 1 : count.get<std::uint64_t>() + 1;
    }
    events_.frames.clear();
    for (const MediumEvents::Leaving& event : events_.departures) {
      if (event.departure.fate == Fate::retry_limit && event.departure.at >= warmup_) {
        ++given_up_[event.from];
      }
    }
    events_.departures.clear();
  }

  Medium medium_;
  StationIndex last_;
  Instant warmup_;
  Instant end_;
  std::uint64_t payload_ = 0;
  Duration interval_{};
  MediumEvents events_;
  std::uint64_t received_ = 0;
  json outcomes_ = json::object();
  std::vector<std::uint64_t> given_up_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "model_chain: give the path of a file with settings\n";
    return 2;
  }
  try {
    std::ifstream file(argv[1]);
    const json settings = json::parse(file);
    std::cout << Chain(settings).run().dump() << std::endl;
  } catch (const std::exception& error) {
    std::cerr << "model_chain: " << argv[1] << ": " << error.what() << "\n";
    return 2;
  }
  return 0;
}
